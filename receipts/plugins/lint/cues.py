"""The words beside a number that tell what it is about: a performance metric, or one of the many other things.

Words of change are a table of what each says of its metric, by its form; patterns are made of it. A rate that is faster
and a time that is shorter are both *better*; more and less are said of the number itself.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final, Literal, NamedTuple

# `level` is the ratio itself: `half the memory`, `twice as long`.
Sense = Literal["up", "down", "better", "worse", "equal", "level"]


class ChangeWords(NamedTuple):
    """Words of one sense, as alternatives of a pattern."""

    sense: Sense
    verbs: str
    nouns: str
    comparatives: str

    @property
    def every(self) -> str:
        """All forms."""
        return f"{self.verbs}|{self.nouns}|{self.comparatives}"


DOWN: Final = ChangeWords(
    "down",
    r"cut\w*|reduc\w+|shr[aiu]nks?|lower(?:s|ed|ing)|fell|fall(?:s|en|ing)?|drop\w*|decreas\w*|declin\w*|"
    r"sav(?:e[sd]?|ing)|shav\w*|trim\w*|los(?:t|es?|ing)|slash\w*|frees?|freed",
    r"reductions?|savings?|decreases?|drops?|cuts?",
    r"less|lower|fewer|shorter|smaller",
)
UP: Final = ChangeWords(
    "up",
    r"r[io]se[sn]?|rising|increas\w*|grew|grow[sn]?|climb\w*|jump\w*|rais\w*|add(?:s|ed)",
    r"increases?|growth",
    r"more|higher|longer|larger|bigger|greater",
)
BETTER: Final = ChangeWords(
    "better",
    r"improv\w*|gain\w*|boost\w*|outperform\w*|accelerat\w*|beats?|recover\w*|regain\w*",
    r"improvements?|gains?|boosts?|wins?",
    "better",
)
WORSE: Final = ChangeWords(
    "worse", r"regress\w*|degrad\w*", r"regressions?|overheads?|penalt(?:y|ies)|degradations?", "worse"
)
# Of a rate; right behind a number they say which way it went.
FASTER: Final = ChangeWords("better", r"speeds?\sup|sped\sup", r"speed-?ups?", "faster|quicker")
SLOWER: Final = ChangeWords("worse", r"slow(?:s|ed|ing)?[\s-]?down\w*|slow(?:s|ed)", r"slow-?downs?", "slower")
CHANGES: Final = (FASTER, SLOWER, BETTER, WORSE, DOWN, UP)
AMOUNTS: Final = f"{DOWN.comparatives}|{UP.comparatives}"
COMPARATIVES: Final = "|".join(row.comparatives for row in CHANGES)
NOUNS: Final = "|".join(row.nouns for row in CHANGES)


# Order matters: the first name whose words match at a place is the cue there.
_METRICS = (
    (
        "mfu",
        r"\b(?:MFU|(?:model[- ])?flops?[- ]utili[sz]ation)\b|\bof (?:the |its )?(?:dense |"
        r"theoretical )?(?:peak|roofline)\b(?! (?:memory|lr|learning))",
    ),
    (
        "utilisation",
        r"\bHFU\b|\bgoodput\b|\butili[sz]ation\b|\bscal(?:es|ed|ing)\b|\b(?:parallel|weak|"
        r"strong) efficiency\b|\bbusy\b|\bof (?:the )?time\b|\boccupancy\b",
    ),
    (
        "compile_seconds",
        r"\b(?:re|pre)?compil\w*|\bcold[- ]start\w*|\bstart[- ]?ups?\b|\bJIT\b|\bwarm cache\b|"
        r"\bautotun\w*|\btracing time\b|\bfirst step\b|\btime to first step\b|\bwarm start\b|"
        r"\bpersistent cache\b|\bcache\b",
    ),
    (
        "latency_seconds",
        r"\blatenc(?:y|ies)\b|\bkernels?\b|\bforward\b|\bbackward\b|\ball[- ]?(?:reduce|gather|"
        r"to[- ]all)\b|\breduce[- ]scatter\b|\bper call\b|\ba call\b|\bp\d\d\b|\bTTFT\b|\bstalls?\b|"
        r"\bstalled\b|\blaunch overhead\b|\bexposed\b|\bcommunication\b|\bdata load(?:ing|er)\b|"
        r"\bloading\b|(?<!activation )(?<!gradient )\bcheckpoint(?:ing| writing| save)\b|"
        r"\boptimi[sz]er step\b|\bgemms?\b|"
        r"\bmatmuls?\b|\bsynchroni[sz]ation\b|\bbubble\b|\bper checkpoint\b|\brouter\b|\bprofiled\b|"
        r"\bidle\b",
    ),
    (
        "step_seconds",
        r"\b(?:step|iteration|iter|training|epoch|batch)[-_ ]times?\b|\b(?:per|a|each|every|of the|"
        r"the (?!first)\w+|off every|hot|profiled|median|mean|average) (?:step|iteration|iter|epoch)s?\b|"
        r"\bsteps\b|\biterations?\b|"
        r"\bwall[- ]?(?:clock|time)\b|\btime to\b|\bs/(?:it|step)\b|\bms/(?:it|step)\b",
    ),
    (
        "peak_bytes",
        r"\b\w*memory\w*\b|\bnvidia-smi\b|\ballocat\w*|\b[HV]RAM\b|\bHBM\b|\b(?:peaks?|"
        r"peaked)\b(?! (?:flop|bandwidth|learning|lr|rate|compute|throughput|tflop|perf))|"
        r"\ballocat\w*|\breserved\b|\bfootprint\b|\bresident\b|\bOOM\w*|\bfits?\b|\bactivations?\b|"
        r"\boptimi[sz]er states?\b|\bprivate pool\b|\bgradients?\b(?! (?:accumulat|norm|clip|checkpoint))|"
        r"\bper (?:rank|chip|GPU|device|"
        r"card)\b|\bheadroom\b|\bfree[ds]?\b|\boffload\w*|\ballocator\b",
    ),
    (
        "tokens_per_second",
        r"\bthroughputs?\b(?: per (?:rank|chip|GPU|device|card)\b)?|"
        r"\btok(?:en)?s?\s?(?:/|per |a )\s?s(?:ec(?:ond)?)?\b|\bfaster\b|\bslower\b|"
        r"\bslow\b|\bfast\b|\bquick(?:er|ly)?\b|\bspeed\w*|\bsped\b|\bslow[- ]?(?:down|s)\w*|"
        r"(?<!\bat )\bthe cost of\b|\b(?:its?|iters?|samples|steps|sequences|images)/s(?:ec)?\b|\b[GTP]FLOPS?\b|"
        r"\b[GTP]FLOPs?(?:/s)?\b|\bperformance\b|\bperf\b|\bregress\w*|\boverhead\b|"
        r"\bend[- ]to[- ]end\b|\be2e\b|\befficien\w+|\boutperform\w*|\btokens per second\b|"
        r"\bscaling\b|\bgains?\b|\baccelerat(?:es?|ed|ing|ion)\b|(?<!acceptance )\brate\b(?! schedule)",
    ),
)
# Every cue begins a word. Saying so first spares the alternatives at all other characters.
_AT_WORD = r"(?<!\w)(?=[A-Za-z0-9])"
METRIC_CUE = re.compile(
    _AT_WORD + "(?:" + "|".join(f"(?P<{name}>{text})" for name, text in _METRICS) + ")", re.IGNORECASE
)

MEMORY = re.compile(f"{_AT_WORD}(?:{dict(_METRICS)['peak_bytes']})", re.IGNORECASE)

# What a percentage, a factor or an amount is about when it is about no performance.
_QUANTITIES = (
    r"accurac(?:y|ies)|acc|loss(?:es)?|perplexit(?:y|ies)|ppl|bits per byte|bpb|scores?|"
    r"benchmarks?|MMLU|GSM8K|BLEU|F1|recall|precision|"
    r"documents?|docs|corpus|corpora|datasets?|data(?! load| parallel| path)|dataset mix|books?|"
    r"languages?|web|share of|samples? of|duplicates?|"
    r"warm-?up(?! (?:step|iter))|dropout|learning[- ]rates?|LR|weight decay|decay|betas?|momentum|"
    r"sparsity|sparse ratio|mask(?:ed|ing)?|clip\w*|"
    r"confidence|intervals?|CI|coverage|quantiles?|percentiles?|significan\w+|probabilit\w+|chance|"
    r"odds|tolerances?|thresholds?|p-value|"
    r"users?|people|readers?|reviewers?|training costs?|"
    r"(?:GPU|TPU|chip)[- ]?hours?|prices?|dollars?|euros?|cheaper|tickets?|budget|market|"
    r"salary|rent\w*|bill|invoice|"
    r"renam\w+|moved code|moved|lines of|commits?|pages?|diff|files? changed|pull requests?|issues|"
    r"seeds?|crash\w*|fail(?:ed|s|ure|ures)?|tests?|power|watts?|energy|temperature|humidity|battery|"
    r"validation|evaluation|eval|split|questions?|answers?|tokens? (?:dropped|routed)|"
    r"(?:is|are|were|share) dropped|dropped (?:tokens?|share)|"
    r"of tokens|by tokens|of (?:all |the |total )*(?:tokens|documents|runs|steps|iterations|users|layers|weights|"
    r"cases|code)|"
    r"agrees?|agreement|curves?|gradient norms?|grad norms?|norms?|rewards?|imbalance|margin|done|finished|"
    r"complete[d]?|discount|quota|sample rate|hit rate|acceptance|"
    r"longer (?:sequence|context)s?|more (?:data|parameters|tokens(?! per)|layers|experts|"
    r"examples|users|GPUs|chips|cards|code)"
)
_SHAPES = (
    r"larger|bigger|wider|deeper|parameters?|params|vocabular\w+|hidden|layers?|experts?|heads?|"
    r"depth|width|context length|batch size|sequence length|seq(?:uence)? len"
)
OTHER_QUANTITY = re.compile(rf"{_AT_WORD}(?:{_QUANTITIES})\b", re.IGNORECASE)
OTHER = re.compile(rf"{_AT_WORD}(?:{_QUANTITIES}|{_SHAPES})\b", re.IGNORECASE)
OTHER_BYTES = re.compile(
    _AT_WORD + r"(?:(?:free )?disks?|datasets?|corpus|downloads?|downloading|uploads?|uploaded|"
    r"checkpoints?(?! stall)|files?|buckets?(?! memory)|buffers?|"
    r"limits?(?!ed)|rotat\w+|host (?:RAM|memory)|system (?:RAM|memory)|CPU (?:RAM|memory)|storage|"
    r"traces?|logs?|NVMe|SSD|archives?|wheels?|images?|artifacts?|"
    r"scratch|cards?|data sheet|HBM\d\w*|GDDR\w*|bandwidth|swap|tokens? (?:sit|on)|repository|"
    r"repo|proto\w*|serialized|vmem|smem|shared memory|scratchpad|cache size|"
    r"L2|traffic|physical|per hour|tokenizer|of (?:HBM|VRAM|GPU memory|device memory|"
    r"unified memory|RAM)|RAM|weights file|safetensors|at least|minimum)\b",
    re.IGNORECASE,
)
OTHER_TIME = re.compile(
    _AT_WORD + r"(?:time-?outs?|timed out|wait(?:s|ed|ing)?|sleep\w*|poll\w*|retry|retries|retried|"
    r"intervals?|every \d|expires?|expired|expiry|TTL|meetings?|deadline|"
    r"attempts?|published|min(?:ute)? read\w*|gives? up|gave up|kill(?:ed|s)?|died|dies|copy|"
    r"copied|CI|nightly job|ago|later|cron|schedule\w*|downloads?|uploads?|videos?|talks?|read\w*|"
    r"tests?|days|weeks?|months?|years?|budget|rental|rented|lunch|patien\w+|evening|heartbeat\w*|"
    r"keep-?alive|lease|grace period|chip-hours?|gpu-hours?)\b",
    re.IGNORECASE,
)
CHIP_NAME = (
    r"(?:[ABHLVT]\d{2,3}0?0?s?\b|GB\d{2,3}|GH200|MI\d{3}\w*|RTX\w*|TPU\w*|v\d[ep]\b|[34590]{2,}90|"
    r"DGX|M\d (?:Max|Ultra|Pro)|Trainium\w*|Gaudi\w*)"
)
HARDWARE_NAME = (
    rf"(?:{CHIP_NAME}|GPUs?\b|cards?\b|chips?\b|nodes?\b|hosts?\b|cores?\b|accelerators?\b|devices?\b|machines?\b|"
    r"boards?\b|slices?\b|box(?:es)?\b|pods?\b)"
)
SPECIFICATION = re.compile(
    _AT_WORD + r"(?:theoretical\w*|data ?sheets?|spec(?:s|ification|ifications| sheet)?|rated|nominal|"
    r"advertis\w+|promis\w+|on paper|marketing|"
    r"denominator|dense peak|sparse peak|peak (?:of|is|at)|(?:bf16|fp16|fp8|dense|hardware|vendor|"
    r"compute|tensor[- ]core) peak|peak (?:bf16|fp16|fp8|dense|compute|flops?|TFLOPs?|bandwidth)|"
    r"equipped|capacity|capable of|up to the|NVLink|PCIe|InfiniBand|interconnect|per direction|"
    r"bidirectional|ceiling of the (?:chip|hardware))\b",
    re.IGNORECASE,
)
MEASURED = re.compile(
    _AT_WORD + r"(?:measur\w+|observ\w+|achiev\w+|sustain\w*|reach(?:es|ed)|got|get(?:s|ting)?|saw|see(?:s|n|"
    r"ing)?|hits?|held|holds|delivers?|delivered|ran at|runs at|running at|"
    r"clocked|recorded|reports?|reported|in practice|reality|actual\w*|now|stood|sits?|sat|went|"
    r"fell|dropped|rose|moved|improved|crawled|yields?|yielded|gave|gives|landed)\b",
    re.IGNORECASE,
)
HYPOTHETICAL = re.compile(
    _AT_WORD + r"(?:would|should|could(?! not)|might|goals?|next (?:week|month|quarter|year|goal|target|"
    r"milestone)|targets?(?! shape)|targeting|aim(?:s|ed|ing)?(?: for| at)?|hop(?:e|es|ed|ing)|"
    r"in theory|whether|todo|ideal\w*|expect(?:s|ed|ing)?|"
    r"projected|imagine|suppos(?:e|ing)|we estimate|estimated|we need|you need|needs? (?:at least|"
    r"to)|must|ought|wish|want(?:s|ed)? to|to be ship|never ship|if it|if we could|"
    r"minimum of|budgeted|bar is|requirement|require[sd]? (?:at least|that)|ship only|only (?:if|"
    r"when) it|at least a?|shall|may be off|may be)\b",
    re.IGNORECASE,
)
ENDS_HYPOTHESIS = re.compile(
    _AT_WORD + r"(?:we (?:measured|got|saw|see|get|have)|measured|reality|in practice|actually|instead (?:we|"
    r"it)|today|currently|but it (?:is|was)|turned out)\b",
    re.IGNORECASE,
)
UP_CUE = re.compile(
    rf"\b(?:{UP.every}|{BETTER.every}|{FASTER.every}|up|additional|extra|tripl\w+|doubl\w+|costs?|"
    r"adds?|twice|thrice)\b|\+",
    re.IGNORECASE,
)
DOWN_CUE = re.compile(
    rf"\b(?:{DOWN.every}|{WORSE.every}|{SLOWER.every}|down|halv\w+|half|slow\w*|off)\b"
    r"|(?<![\w.])[−–-](?=\s?\d)",
    re.IGNORECASE,
)
EQUAL_CUE = re.compile(r"\b(?:unchanged|same|flat|equal|within|neutral|identical|no slower|par)\b", re.IGNORECASE)
BOUNDARY = re.compile(
    r"[;:()—,]|\s[–|•·]\s|\b(?:but|while|whereas|and|which|because|although|though|yet|so)\b", re.IGNORECASE
)
_FAR = 10_000
_CROSSING = 22


class Sentence:
    """A sentence whose words and clause boundaries are looked up once; distances count a boundary as several words."""

    __slots__ = ("_boundaries", "_cached", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._boundaries: list[int] | None = None
        self._cached: dict[re.Pattern[str], list[re.Match[str]]] = {}

    def __repr__(self) -> str:
        return f"Sentence({self.text!r})"

    def matches(self, words: re.Pattern[str]) -> list[re.Match[str]]:
        """Every match of some words."""
        cached = self._cached.get(words)
        if cached is None:
            cached = self._cached[words] = list(words.finditer(self.text))
        return cached

    def distance(self, start: int, end: int, other: tuple[int, int]) -> int:
        """Characters between two spans, and a surcharge for every clause boundary between them."""
        low, high = (end, other[0]) if other[0] >= end else (other[1], start)
        if high <= low:
            return 0
        if self._boundaries is None:
            self._boundaries = [match.start() for match in BOUNDARY.finditer(self.text)]
        crossed = bisect_left(self._boundaries, high) - bisect_left(self._boundaries, low)
        # A word that follows its number is closer to it than one before: `13 % faster`.
        follows = 0 if other[0] >= end else 3
        return high - low + follows + _CROSSING * crossed


def nearest(sentence: Sentence, start: int, end: int, words: re.Pattern[str]) -> tuple[int, re.Match[str] | None]:
    """Distance to the nearest match of some words, and that match."""
    best: tuple[int, re.Match[str] | None] = (_FAR, None)
    for match in sentence.matches(words):
        away = sentence.distance(start, end, match.span())
        if away < best[0]:
            best = (away, match)
    return best
