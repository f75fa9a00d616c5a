"""The forms of issued tokens, as their issuers and the scanners gitleaks and detect-secrets publish them.

Every issuer here begins its tokens with letters that it chose so that they can be found. A form is those letters and
the body that follows; what has its mark elsewhere is in `_ELSEWHERE`. A key without any form, such as 40 bare hex
digits, is none of these: it is a commit as well. RE2 reads the same patterns, so none of them looks ahead or behind.
"""

from __future__ import annotations

_W, _D, _H = r"[A-Za-z0-9]", r"[A-Za-z0-9_-]", r"[A-Fa-f0-9]"

# Beginnings, apart by blanks, and the body after any of them.
_BEGINNINGS = (
    ("rcp_", rf"{_H}{{8}}_{_D}{{16,}}"),  # this product's own
    ("ghp_ gho_ ghu_ ghs_ ghr_", rf"{_W}{{20,}}"),  # GitHub
    ("github_pat_", r"[A-Za-z0-9_]{20,}"),
    ("glpat- gldt- glft- glrt- glptt- glcbt- glimt- glsoat- glagent- gloas- glffct- GR1348941", r"[A-Za-z0-9_.-]{16,}"),
    ("hf_ api_org_", rf"{_W}{{16,}}"),  # Hugging Face
    (
        "sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or- sk-lf-",
        rf"{_D}{{16,}}",
    ),  # Anthropic, OpenAI, OpenRouter, Langfuse
    ("sk-", rf"(?:[A-Za-z]{{2,10}}-)?{_W}{{20,}}"),
    ("gsk_ r8_ xai- pplx- csk- jina_ tgp_v1_ pcsk_ rpa_", r"[A-Za-z0-9_]{32,}"),  # Groq, Replicate, xAI, Perplexity, …
    ("lsv2_pt_ lsv2_sk_", r"[a-f0-9]{32}_[a-f0-9]{10}"),  # LangSmith
    ("nvapi-", rf"{_D}{{16,}}"),
    ("xapp-", r"\d-[A-Za-z0-9-]{10,}"),  # Slack
    ("AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}\b"),  # AWS
    ("ABSK", r"[A-Za-z0-9+/]{64,}={0,2}"),
    ("amzn.mws.", r"[a-f0-9-]{36}"),
    ("AIza", rf"{_D}{{30,}}"),  # Google
    ("ya29. GOCSPX-", rf"{_D}{{20,}}"),
    ("dapi", r"[a-z0-9]{32}(?:-\d)?\b"),  # Databricks
    ("hvs. hvb. hvr.", rf"{_D}{{20,}}"),  # HashiCorp Vault
    ("dckr_pat_ dckr_oat_", rf"{_D}{{20,}}"),  # Docker
    ("npm_", rf"{_W}{{30,}}"),
    ("pypi-AgE", rf"{_D}{{30,}}"),
    ("rubygems_", r"[a-f0-9]{48}"),
    ("AKCp", rf"{_W}{{60,}}"),  # Artifactory
    ("cmVmd", rf"{_W}{{59}}\b"),
    ("sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_", rf"{_W}{{16,}}"),  # Stripe
    ("sq0atp- sq0csp- sq0idp-", rf"{_D}{{22,}}"),  # Square
    ("EAAA", rf"{_D}{{60}}\b"),
    ("shpat_ shpca_ shppa_ shpss_", rf"{_H}{{32}}"),  # Shopify
    ("SK", r"[a-f0-9]{32}\b"),  # Twilio
    ("key-", r"[a-f0-9]{32}\b"),  # Mailgun
    ("SG.", rf"{_D}{{16,}}\.{_D}{{16,}}"),  # SendGrid
    ("xkeysib- xsmtpsib-", rf"[a-f0-9]{{64}}-{_W}{{16}}"),  # Brevo
    ("dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{32,}"),  # DigitalOcean
    ("HRKU-", rf"{_D}{{30,}}"),  # Heroku
    ("LTAI", rf"{_W}{{16,24}}\b"),  # Alibaba
    ("AQVN", rf"{_D}{{35,38}}\b"),  # Yandex
    ("fo1_ fm2_ fm1r_ fm1a_", r"[A-Za-z0-9+/_-]{40,}={0,3}"),  # Fly.io
    ("v1.0-", r"[a-f0-9]{24}-[a-f0-9]{40,}"),  # Cloudflare
    ("tskey-auth- tskey-api- tskey-client-", rf"{_D}{{16,}}"),  # Tailscale
    ("pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_=.-]{32,}"),  # PlanetScale
    ("pul-", r"[a-f0-9]{40}\b"),  # Pulumi
    ("pnu_ pnb_", rf"{_W}{{36}}"),  # Prefect
    ("dp.pt. dp.ct. dp.sa. dp.st.", rf"(?:[a-z0-9_-]{{2,35}}\.)?{_W}{{40,}}"),  # Doppler
    ("dt0c01. dt0s01.", rf"{_W}{{24}}\.{_W}{{64}}"),  # Dynatrace
    ("glc_ glsa_", r"[A-Za-z0-9+/_]{32,}={0,2}"),  # Grafana
    ("eyJrIjoi eyJhcGlf", r"[A-Za-z0-9+/]{40,}={0,2}"),  # Grafana, Neptune
    ("sntrys_ sntryu_", r"[A-Za-z0-9_+/=]{40,}"),  # Sentry
    ("NRAK- NRJS- NRII-", r"[A-Za-z0-9-]{19,}"),  # New Relic
    ("PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),  # Postman
    ("lin_api_ lin_oauth_", rf"{_W}{{32,}}"),  # Linear
    ("ntn_ secret_", rf"{_W}{{43,}}"),  # Notion
    ("ATATT3 ATCTT3 ATBB", r"[A-Za-z0-9_=-]{28,}"),  # Atlassian
    ("squ_ sqp_ sqa_", r"[a-f0-9]{40}"),  # Sonar
    ("sgp_", r"[a-f0-9]{16,}_?[a-f0-9]{24,}"),  # Sourcegraph
    ("shippo_live_ shippo_test_ duffel_live_ duffel_test_", rf"{_D}{{40,}}"),
    ("EZAK EZTK", rf"{_W}{{54}}"),  # EasyPost
    ("tfp_", r"[A-Za-z0-9_.=-]{40,}"),  # Typeform
    ("rdme_", r"[a-z0-9]{64,}"),
    ("sha256~", rf"{_D}{{43}}\b"),  # OpenShift
    ("AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
    ("ops_eyJ", r"[A-Za-z0-9+/]{64,}={0,3}"),  # 1Password
    ("pat", rf"{_W}{{14}}\.[a-f0-9]{{64}}"),  # Airtable
    ("pat. sat.", rf"{_D}{{22}}\.{_W}{{24}}\.{_W}{{20}}"),  # Harness
)
# What every text with this form has in it, and the form.
_ELSEWHERE = (
    ("wandb_v", rf"\bwandb_v\d_{_D}{{16,}}"),
    ("xox", r"\bxox[a-z][-.][A-Za-z0-9.-]{10,}"),
    ("hooks.slack", r"\bhooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_+-]{20,}"),
    ("/webhooks/", rf"\bdiscord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{{16,20}}/{_D}{{30,}}"),
    (".office.com/webhook", r"\boffice\.com/webhook(?:b2)?/[A-Za-z0-9/@-]{36,}"),  # Microsoft Teams
    ("/hooks/", r"/hooks/[a-z0-9]{26}\b"),  # Mattermost
    (
        ".",
        rf"\b[MNO][DTjz][AEIMQUYcgk][w-z0-5][MNO]{_W}{{18,22}}\.{_D}{{6}}\.{_D}{{27,}}",
    ),  # Discord: a number in base64
    (":A", rf"\b\d{{8,10}}:A{_D}{{34}}\b"),  # Telegram
    ("-us", r"\b[a-f0-9]{32}-us\d{1,2}\b"),  # Mailchimp
    (".atlasv1.", rf"\b{_W}{{14}}\.atlasv1\.{_D}{{40,}}"),  # Terraform
    ("Q~", r"\b[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),  # Azure: an application's secret
    ("Key=", r"\b(?:Account|Access|SharedAccess)Key=[A-Za-z0-9+/%]{20,}={0,2}"),  # Azure: connection strings
    ("+ASt", r"\b[A-Za-z0-9+/]{70,76}\+ASt[A-Za-z0-9+/]{6}=="),  # Azure: storage
    ("JQQJ9", rf"\b{_W}{{52}}JQQJ9{_W}{{20,}}"),  # Azure: services and DevOps
    ("_mmk", rf"\b{_W}{{6}}_{_W}{{29}}_mmk\b"),  # MaxMind
    ("eyJ", rf"\beyJ{_D}{{8,}}\.{_D}{{8,}}\.?{_D}*"),  # a signed JSON web token
    (
        "PRIVATE",  # its words may stand apart, or in quotes of a shell
        r"-----BEGIN [A-Z0-9 ']*PRIVATE[ ']+KEY(?: BLOCK)?-----[\s\S]*?"
        r"(?:-----END[A-Z0-9 ']*PRIVATE[ ']+KEY(?: BLOCK)?-----|\Z)",
    ),
)


def _spelled() -> tuple[tuple[str, str], ...]:
    begun = tuple(
        (start, rf"\b{start.replace('.', '[.]')}{body}") for starts, body in _BEGINNINGS for start in starts.split()
    )
    return begun + _ELSEWHERE


# Every form with letters that a text with such a token holds: to look for those first costs next to nothing.
FORMS = _spelled()
