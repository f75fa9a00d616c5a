"""The words beside a number that tell what it is about: a performance metric, or one of the many other things."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

# Order matters: the first name whose words match at a place is the cue there.
_METRICS = (
    ("mfu", r"\b(?:MFU|HFU|model[- ]flops?[- ]utili[sz]ation)\b|\bof (?:the |its )?(?:dense |theoretical )?(?:peak|roofline)\b(?! (?:memory|lr|learning))"),
    ("utilisation", r"\bgoodput\b|\butili[sz]ation\b|\bscal(?:es|ed|ing)\b|\b(?:parallel|weak|strong) efficiency\b|\bbusy\b|\bof (?:the )?time\b|\boccupancy\b"),
    ("compile_seconds", r"\b(?:re|pre)?compil\w*|\bcold[- ]start\w*|\bstart[- ]?ups?\b|\bJIT\b|\bwarm cache\b|\bautotun\w*|\btracing time\b|\bfirst step\b|\btime to first step\b|\bwarm start\b|\bpersistent cache\b|\bcache\b"),
    ("latency_seconds", r"\blatenc(?:y|ies)\b|\bkernels?\b|\bforward\b|\bbackward\b|\ball[- ]?(?:reduce|gather|to[- ]all)\b|\breduce[- ]scatter\b|\bper call\b|\ba call\b|\bp\d\d\b|\bTTFT\b|\bstalls?\b|\bstalled\b|\blaunch overhead\b|\bexposed\b|\bcommunication\b|\bdata load(?:ing|er)\b|\bloading\b|\bcheckpoint(?:ing| writing| save)\b|\boptimi[sz]er step\b|\bgemms?\b|\bmatmuls?\b|\bsynchroni[sz]ation\b|\bbubble\b|\bper checkpoint\b|\brouter\b|\bprofiled\b|\bidle\b"),
    ("step_seconds", r"\b(?:step|iteration|iter|training|epoch|batch) times?\b|\b(?:per|a|each|every|of the|the \w+|off every|hot|profiled) (?:step|iteration|iter|epoch)s?\b|\bsteps\b|\biterations?\b|\bwall[- ]?(?:clock|time)\b|\btime to\b|\bs/(?:it|step)\b|\bms/(?:it|step)\b"),
    ("peak_bytes", r"\b\w*memory\w*\b|\bnvidia-smi\b|\ballocat\w*|\b[HV]RAM\b|\bHBM\b|\b(?:peaks?|peaked)\b(?! (?:flop|bandwidth|learning|lr|rate|compute|throughput|tflop|perf))|\ballocat\w*|\breserved\b|\bfootprint\b|\bresident\b|\bOOM\w*|\bfits?\b|\bactivations?\b|\boptimi[sz]er states?\b|\bprivate pool\b|\bgradients?\b|\bper (?:rank|chip|GPU|device|card)\b|\bheadroom\b|\bfree[ds]?\b|\boffload\w*|\ballocator\b"),
    ("tokens_per_second", r"\bthroughputs?\b|\btok(?:en)?s?\s?(?:/|per |a )\s?s(?:ec(?:ond)?)?\b|\bfaster\b|\bslower\b|\bslow\b|\bfast\b|\bquick(?:er|ly)?\b|\bspeed\w*|\bsped\b|\bslow[- ]?(?:down|s)\w*|\bthe cost of\b|\b(?:its?|iters?|samples|steps|sequences|images)/s(?:ec)?\b|\b[GTP]FLOPS?\b|\b[GTP]FLOPs?(?:/s)?\b|\bperformance\b|\bperf\b|\bregress\w*|\boverhead\b|\bend[- ]to[- ]end\b|\be2e\b|\befficien\w+|\boutperform\w*|\btokens per second\b|\bscaling\b|\bgains?\b|\brate\b(?! schedule)"),
)
METRIC_CUE = re.compile("|".join(f"(?P<{name}>{text})" for name, text in _METRICS), re.IGNORECASE)

MEMORY = re.compile(dict(_METRICS)["peak_bytes"], re.IGNORECASE)

# What a percentage, a factor or an amount is about when it is about no performance.
_QUANTITIES = (
    r"accurac(?:y|ies)|acc|loss(?:es)?|perplexit(?:y|ies)|ppl|bits per byte|bpb|scores?|benchmarks?|MMLU|GSM8K|BLEU|F1|recall|precision|"
    r"documents?|docs|corpus|corpora|datasets?|data(?! load| parallel| path)|dataset mix|books?|languages?|web|share of|samples? of|duplicates?|"
    r"warm-?up(?! (?:step|iter))|dropout|learning[- ]rates?|LR|weight decay|decay|betas?|momentum|sparsity|sparse ratio|mask(?:ed|ing)?|clip\w*|"
    r"confidence|intervals?|coverage|quantiles?|percentiles?|significan\w+|probabilit\w+|chance|odds|tolerances?|thresholds?|p-value|"
    r"users?|people|readers?|reviewers?|prices?|dollars?|euros?|cheaper|tickets?|budget|market|salary|rent\w*|bill|invoice|"
    r"renam\w+|moved code|moved|lines of|commits?|pages?|diff|files? changed|pull requests?|issues|"
    r"seeds?|crash\w*|fail(?:ed|s|ure|ures)?|tests?|power|watts?|energy|temperature|humidity|battery|"
    r"validation|evaluation|eval|split|questions?|answers?|tokens? (?:dropped|routed)|dropped|of tokens|by tokens|of (?:all |the )?(?:tokens|documents|runs|steps|users|layers|weights|cases|code)|"
    r"gradient norm|grad norm|norm|imbalance|margin|done|finished|complete[d]?|discount|quota|sample rate|hit rate|acceptance|"
    r"longer (?:sequence|context)s?|more (?:data|parameters|tokens(?! per)|layers|experts|examples|users|GPUs|chips|cards|code)"
)
_SHAPES = r"larger|bigger|wider|deeper|parameters?|params|vocabular\w+|hidden|layers?|experts?|heads?|depth|width|context length|batch size|sequence length|seq(?:uence)? len"
OTHER_QUANTITY = re.compile(rf"\b(?:{_QUANTITIES})\b", re.IGNORECASE)
OTHER = re.compile(rf"\b(?:{_QUANTITIES}|{_SHAPES})\b", re.IGNORECASE)
OTHER_BYTES = re.compile(
    r"\b(?:disks?|datasets?|corpus|downloads?|downloading|uploads?|uploaded|checkpoints?(?! stall)|files?|buckets?(?! memory)|buffers?|"
    r"limits?(?!ed)|rotat\w+|host (?:RAM|memory)|system (?:RAM|memory)|CPU (?:RAM|memory)|storage|traces?|logs?|NVMe|SSD|archives?|wheels?|images?|artifacts?|"
    r"scratch|cards?|data sheet|HBM\d\w*|GDDR\w*|bandwidth|swap|tokens? (?:sit|on)|repository|repo|proto\w*|serialized|vmem|smem|shared memory|scratchpad|cache size|"
    r"L2|traffic|physical|per hour|tokenizer|of (?:HBM|VRAM|GPU memory|device memory|unified memory|RAM)|RAM|weights file|safetensors|at least|minimum)\b",
    re.IGNORECASE,
)
OTHER_TIME = re.compile(
    r"\b(?:time-?outs?|timed out|wait(?:s|ed|ing)?|sleep\w*|poll\w*|retry|retries|retried|intervals?|every \d|expires?|expired|expiry|TTL|meetings?|deadline|"
    r"attempts?|published|min(?:ute)? read\w*|gives? up|gave up|kill(?:ed|s)?|died|dies|copy|copied|CI|nightly job|ago|later|cron|schedule\w*|downloads?|uploads?|videos?|talks?|read\w*|"
    r"tests?|days|weeks?|months?|years?|budget|rental|rented|lunch|patien\w+|evening|heartbeat\w*|keep-?alive|lease|grace period|chip-hours?|gpu-hours?)\b",
    re.IGNORECASE,
)
HARDWARE_NAME = (
    r"(?:[ABHLVT]\d{2,3}0?0?s?\b|GB\d{2,3}|GH200|MI\d{3}\w*|RTX\w*|TPU\w*|v\d[ep]\b|[34590]{2,}90|DGX|M\d (?:Max|Ultra|Pro)|Trainium\w*|Gaudi\w*|"
    r"GPUs?\b|cards?\b|chips?\b|nodes?\b|hosts?\b|cores?\b|accelerators?\b|devices?\b|machines?\b|boards?\b|slices?\b|box(?:es)?\b|pods?\b)"
)
SPECIFICATION = re.compile(
    r"\b(?:theoretical\w*|data ?sheets?|spec(?:s|ification|ifications| sheet)?|rated|nominal|advertis\w+|promis\w+|on paper|marketing|"
    r"denominator|dense peak|sparse peak|peak (?:of|is|at)|(?:bf16|fp16|fp8|dense|hardware|vendor|compute|tensor[- ]core) peak|peak (?:bf16|fp16|fp8|dense|compute|flops?|TFLOPs?|bandwidth)|"
    r"equipped|capacity|capable of|up to the|NVLink|PCIe|InfiniBand|interconnect|per direction|bidirectional|ceiling of the (?:chip|hardware))\b",
    re.IGNORECASE,
)
MEASURED = re.compile(
    r"\b(?:measur\w+|observ\w+|achiev\w+|sustain\w*|reach(?:es|ed)|got|get(?:s|ting)?|saw|see(?:s|n|ing)?|hits?|held|holds|delivers?|delivered|ran at|runs at|running at|"
    r"clocked|recorded|reports?|reported|in practice|reality|actual\w*|now|stood|sits?|sat|went|fell|dropped|rose|moved|improved|crawled|yields?|yielded|gave|gives|landed)\b",
    re.IGNORECASE,
)
HYPOTHETICAL = re.compile(
    r"\b(?:would|should|could(?! not)|might|goals?|targets?(?! shape)|targeting|aim(?:s|ed|ing)?(?: for| at)?|hop(?:e|es|ed|ing)|in theory|ideal\w*|expect(?:s|ed|ing)?|"
    r"projected|imagine|suppos(?:e|ing)|we estimate|estimated|we need|you need|needs? (?:at least|to)|must|ought|wish|want(?:s|ed)? to|to be ship|never ship|if it|if we could|"
    r"minimum of|budgeted|bar is|requirement|require[sd]? (?:at least|that)|ship only|only (?:if|when) it|at least a?|shall|may be off|may be)\b",
    re.IGNORECASE,
)
ENDS_HYPOTHESIS = re.compile(
    r"\b(?:we (?:measured|got|saw|see|get|have)|measured|reality|in practice|actually|instead (?:we|it)|today|currently|but it (?:is|was)|turned out)\b",
    re.IGNORECASE,
)
UP = re.compile(r"\b(?:faster|quicker|speed-?ups?|sped|more|higher|up|rose|rise[sn]?|increas\w*|improv\w*|grew|grow[sn]?|gain\w*|additional|extra|jump\w*|climb\w*|outperform\w*|tripl\w+|doubl\w+|costs?|adds?|longer|larger|twice|thrice|better|win)\b|\+", re.IGNORECASE)
DOWN = re.compile(r"\b(?:slower|less|lower|fewer|down|fell|fall[sn]?|drop\w*|decreas\w*|reduc\w*|shrinks?|shrank|shrunk|cuts?|sav(?:e[sd]?|ing)|shav\w+|halv\w+|half|slow\w*|lost|los[es]+|regress\w*|frees?|freed|shorter|smaller|worse|trim\w*|off)\b|[−–-](?=\s?\d)", re.IGNORECASE)
EQUAL = re.compile(r"\b(?:unchanged|same|flat|equal|within|neutral|identical|no slower|par)\b", re.IGNORECASE)
_BOUNDARY = re.compile(r"[;:()—,]|\s–\s|\b(?:but|while|whereas|and|which|because|although|though|yet|so)\b", re.IGNORECASE)
_FAR = 10_000
_CROSSING = 22


@dataclass(frozen=True)
class Sentence:
    """A sentence with its clause boundaries, measured once; distances between words count boundaries as words."""

    text: str
    boundaries: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Sentence:
        """Boundaries are punctuation and conjunctions."""
        return cls(text, tuple(match.start() for match in _BOUNDARY.finditer(text)))

    def distance(self, start: int, end: int, other: tuple[int, int]) -> int:
        """Characters between two spans, and a surcharge for every clause boundary between them."""
        low, high = (end, other[0]) if other[0] >= end else (other[1], start)
        if high <= low:
            return 0
        crossed = bisect_left(self.boundaries, high) - bisect_left(self.boundaries, low)
        # A word that follows its number stands closer to it than one before: `13 % faster`.
        follows = 0 if other[0] >= end else 3
        return high - low + follows + _CROSSING * crossed


def nearest(sentence: Sentence, start: int, end: int, words: re.Pattern[str]) -> tuple[int, re.Match[str] | None]:
    """Distance to the nearest match of some words, and that match."""
    best: tuple[int, re.Match[str] | None] = (_FAR, None)
    for match in words.finditer(sentence.text):
        away = sentence.distance(start, end, match.span())
        if away < best[0]:
            best = (away, match)
    return best
