"""Rows of pretrained recurrent models: Stanza's character models, SpeechBrain's language model, docTR's CRNN."""

from zoo.models.weights_row import Weights

STANZA = "hf://stanfordnlp/stanza-en/models"
# A commit that lists the 1billion files; the others were seen on the main branch only.
COMMIT = "f1044133e5e3ba51452b5cd41ff0a5dddbadd3d3"


def stanza(direction: str, corpus: str, revision: str, units: int, md5: str | None = None) -> Weights:
    """One of Stanza's English character models; 4,614,144 parameters and 1,125 for each unit of the vocabulary."""
    notes = [f"about {units} units, as the file's size says"] if md5 else []
    notes += [f"md5 {md5} by Stanza's resources"] if md5 else ["revision unseen"]
    return Weights(
        f"charlm-en-{direction}", corpus, f"{STANZA}/{direction}_charlm/{corpus}.pt@{revision}", "apache-2.0",
        4_614_144 + 1125 * units, md5=md5, size_text="22.7 MB" if md5 else "", key_map="stanza_charlm",
        num_classes=units, labels=None, note="; ".join(notes),
    )


RNNLM = Weights(
    "rnnlm-librispeech", "speechbrain",
    "hf://speechbrain/asr-crdnn-rnnlm-librispeech/lm.ckpt@0e7fdb936a05d8cdd3fd6c410445f3b7ebdc116f", "apache-2.0",
    53_104_104, size_text="212 MB", key_map="speechbrain_rnnlm", labels=None,
    note="word pieces of tokenizer.ckpt in the same repository, a SentencePiece model that zoo does not read",
)
CRNN = Weights(
    "crnn_vgg16_bn", "doctr", "https://doctr-static.mindee.com/models?id=v0.12.0/crnn_vgg16_bn-0417f351.pt&src=0",
    "apache-2.0", 15_808_447, sha256_prefix="0417f351", size_text="63 MB", num_classes=127, labels=None,
    note="pictures of 3x32x128, mean (0.694, 0.695, 0.693), std (0.299, 0.296, 0.301); the vocabulary is docTR's "
    "french or legacy_french, whichever has as many characters as the file",
)
MD5 = {"forward": "468b3377455fa0311565d46865f55afb", "backward": "1405948b125b4264fd17509d1b6175ca"}
ROWS = (
    *(stanza(direction, "1billion", COMMIT, 943, md5) for direction, md5 in MD5.items()),
    *(stanza(direction, corpus, "main", units) for direction in MD5
      for corpus, units in (("mimic", 99), ("pubmed", 276))),
    RNNLM,
    CRNN,
)
DEFAULTS = {f"charlm-en-{direction}": "1billion" for direction in MD5}
