"""Recurrent models: the files of Stanza, SpeechBrain and docTR against torch; writing, scoring, classifying."""
import hashlib
import io
import math
import sys

import numpy as np
import pytest

import zoo
from tests.test_hub_cli import said
from zoo import checkpoint, hub, models
from zoo.data.text import kjv
from zoo.hub.__main__ import main
from zoo.hub.errors import CorruptError
from zoo.models import language_model, sampling
from zoo.models import weights as weights_of
from zoo.models.charlm import CharLM, stanza_dict
from zoo.models.crnn import CRNN, FRENCH, LEGACY_FRENCH
from zoo.models.rnn import RNNLM, Seq2Seq, SequenceClassifier
from zoo.models.vocabulary import SPECIAL, Vocabulary

TEXTS = ["Hello, world!\n", "a", "Ω is unknown here; so is é.", "The quick brown fox jumps over the lazy dog. " * 3]
UNITS = [*SPECIAL, *(chr(k) for k in range(126, 31, -1)), "\n"]
SIZE, EMBEDDING = 24, 10


@pytest.fixture
def load(running, tmp_path):
    """hub.load(name) in a process whose Hub is the server, which has this file where the name's row says it is."""
    server, client = running

    def call(name, data, inputs):
        server.reset()
        row = weights_of.get(name)
        repo = "/".join(row.source.removeprefix("hf://").split("/")[:2])
        path = row.source.removeprefix(f"hf://{repo}/").rpartition("@")[0]
        files = server.repos.setdefault(repo, {})
        files[row.revision] = files.pop(server.add(repo, path, data))
        kept = [str(tmp_path / "cache")]
        if row.md5:                                # the row's is of Stanza's file, and this is not that file
            with pytest.raises(CorruptError, match=f"expected {row.md5}"):
                client.call(seen_of, name, inputs, *kept, row.md5)
            kept.append(hashlib.md5(data).hexdigest())
        return client.call(seen_of, name, inputs, *kept)
    return call


def seen_of(name, texts, cache, md5=None):
    """Runs in the client's process: what there is to see of the model; md5 is the row's from now on."""
    if md5:
        object.__setattr__(weights_of.get(name), "md5", md5)
    model = hub.load(name, cache_dir=cache, progress=False)
    prompt = texts[0]
    return {"scores": [model.score(text) for text in texts], "embedded": model.embed(texts).numpy(),
            "written": model.generate(prompt, 12, temperature=0), "row": model.weights.name,
            "architecture": model.architecture, "training": model.training}


# -- Stanza

def torch_charlm(cells=False):
    """A torch module of Stanza's layout (stanza/models/common/char_model.py), written for this test; seeded weights."""
    import torch

    class Lstm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.Module() if cells else torch.nn.LSTM(EMBEDDING, SIZE, batch_first=True)
            if cells:
                self.lstm.cells = torch.nn.ModuleList([torch.nn.LSTMCell(EMBEDDING, SIZE)])

        def forward(self, x, states):
            if not cells:
                return self.lstm(x, states)
            (h, c), found = (s[0] for s in states), []
            for k in range(x.shape[1]):
                h, c = self.lstm.cells[0](x[:, k], (h, c))
                found.append(h)
            return torch.stack(found, 1), (h[None], c[None])

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.char_emb = torch.nn.Embedding(len(UNITS), EMBEDDING)
            self.charlstm = Lstm()
            self.charlstm_h_init = torch.nn.Parameter(torch.randn(1, 1, SIZE) * 0.3)
            self.charlstm_c_init = torch.nn.Parameter(torch.randn(1, 1, SIZE) * 0.3)
            self.decoder = torch.nn.Linear(SIZE, len(UNITS))

        def outputs(self, ids):
            return self.charlstm(self.char_emb(ids), (self.charlstm_h_init, self.charlstm_c_init))[0]

    torch.manual_seed(1)
    return Model()


def numbers(text, forward):
    found = [UNITS.index(c) if c in UNITS else 1 for c in text]
    return [UNITS.index("\n"), *(found if forward else found[::-1])]


def stanza_bytes(model, forward, wrapped):
    """The file as Stanza writes it: torch's legacy format."""
    import torch
    vocab = {"lang": "en", "idx": 0, "cutoff": 0, "lower": False, "_unit2id": {u: k for k, u in enumerate(UNITS)},
             "_id2unit": UNITS}
    obj = {"vocab": vocab, "args": {"char_emb_dim": EMBEDDING, "char_hidden_dim": SIZE, "char_num_layers": 1,
                                    "char_dropout": 0.05, "char_rec_dropout": 0.0},
           "state_dict": model.state_dict(), "pad": True, "is_forward_lm": forward}
    if wrapped:
        obj = {"model": obj, "epoch": 3, "global_step": 70, "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]}}
    file = io.BytesIO()
    torch.save(obj, file, _use_new_zipfile_serialization=False)
    return file.getvalue()


@pytest.mark.torch
@pytest.mark.parametrize(("direction", "wrapped", "cells"), [
    ("forward", False, False), ("forward", True, True), ("backward", True, False)])
def test_stanzas_files_load_in_one_line(direction, wrapped, cells, load):
    import torch
    theirs, forward = torch_charlm(cells), direction == "forward"
    seen = load(f"charlm-en-{direction}", stanza_bytes(theirs, forward, wrapped), TEXTS)
    assert seen["row"] == f"charlm-en-{direction}.1billion" and seen["architecture"] == f"charlm-en-{direction}"
    assert not seen["training"]
    with torch.no_grad():
        for text, score, state in zip(TEXTS, seen["scores"], seen["embedded"], strict=True):
            ids = torch.tensor([numbers(text, forward)])
            outputs = theirs.outputs(ids)
            loss = torch.nn.functional.cross_entropy(theirs.decoder(outputs[0, :-1]).double(), ids[0, 1:])
            assert score == pytest.approx(loss.item() / math.log(2), abs=1e-5)
            np.testing.assert_allclose(state, outputs[0, -1], atol=1e-5)
        ids = numbers(TEXTS[0], forward)
        for _ in range(12):                        # greedily, the whole text anew for each character
            logits = theirs.decoder(theirs.outputs(torch.tensor([ids]))[0, -1])
            logits[: len(SPECIAL)] = -torch.inf
            ids.append(int(logits.argmax()))
    new = "".join(UNITS[k] for k in ids[-12:])
    assert seen["written"] == (TEXTS[0] + new if forward else new[::-1] + TEXTS[0])


def test_files_of_other_things_are_refused(tmp_path):
    path = tmp_path / "w.pt"
    good = stanza_dict(CharLM(hidden_size=4))
    vocab = good["vocab"]
    for wrong, words in (
        ({"weights": zoo.ones(2)}, "no character model: wants a dict with vocab"),
        (good | {"vocab": vocab | {"_id2unit": vocab["_id2unit"][1:]}}, "<PAD>, <UNK>"),
        (good | {"vocab": vocab | {"_unit2id": {}}}, "contradict"),
        (good | {"vocab": vocab | {"_id2unit": [*vocab["_id2unit"], "a"]}}, "every unit once"),
        (good | {"state_dict": {"decoder.weight": zoo.ones(2)}}, "no character model"),
        (good | {"state_dict": [1]}, "not dicts"),
    ):
        zoo.save(wrong, path)
        with pytest.raises(checkpoint.FileError, match=words):
            hub.load("charlm", path)
    zoo.save(good, path)
    with pytest.raises(ValueError, match="num_classes belongs to image classifiers"):
        hub.load("charlm", path, num_classes=3)
    with pytest.raises(TypeError, match="in_chans"):
        hub.load("charlm", path, in_chans=3)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_our_files_are_stanzas(suffix, tmp_path):
    zoo.manual_seed(0)
    model = CharLM(hidden_size=16, num_layers=2, is_forward=False).eval()
    zoo.save(stanza_dict(model), tmp_path / f"m{suffix}")
    again = hub.load("charlm", tmp_path / f"m{suffix}")
    assert again.vocabulary == model.vocabulary and not again.is_forward and again.dropout.p == 0.05
    assert again.score("some text") == model.score("some text")
    if suffix == ".pt":
        torch = pytest.importorskip("torch")
        state = torch.load(tmp_path / "m.pt", weights_only=True)
        assert set(state) == {"vocab", "args", "state_dict", "pad", "is_forward_lm"}
        assert state["state_dict"]["charlstm.lstm.weight_hh_l1"].shape == (64, 16)


# -- SpeechBrain

@pytest.mark.torch
@pytest.mark.parametrize("legacy", [True, False])
def test_speechbrains_file_loads_in_one_line(legacy, load):
    import torch
    torch.manual_seed(2)
    nn = torch.nn
    embedding, lstm, linear = nn.Embedding(40, 6), nn.LSTM(6, 16, 2, batch_first=True), nn.Linear(16, 12)
    norm, out = nn.LayerNorm(12), nn.Linear(12, 40)
    nn.init.normal_(norm.weight)
    named = {"embedding.Embedding": embedding, "rnn.rnn": lstm, "dnn.linear.w": linear, "dnn.norm.norm": norm,
             "out.w": out}
    state = {f"{place}.{key}": value for place, layer in named.items() for key, value in layer.state_dict().items()}
    file, texts = io.BytesIO(), [[3, 1, 4, 1, 5], [9], [2, 6, 5, 3, 5, 8, 9, 7]]
    torch.save(state, file, _use_new_zipfile_serialization=not legacy)
    seen = load("rnnlm-librispeech", file.getvalue(), texts)
    assert seen["row"] == "rnnlm-librispeech.speechbrain"
    with torch.no_grad():
        for text, score, state in zip(texts, seen["scores"], seen["embedded"], strict=True):
            ids = torch.tensor([[0, *text]])
            outputs = lstm(embedding(ids))[0]
            logits = out(nn.functional.leaky_relu(norm(linear(outputs))))
            loss = nn.functional.cross_entropy(logits[0, :-1].double(), ids[0, 1:])
            assert score == pytest.approx(loss.item() / math.log(2), abs=1e-5)
            np.testing.assert_allclose(state, outputs[0, -1], atol=1e-5)
    assert seen["written"][:5] == texts[0] and len(seen["written"]) == 17


def test_the_real_sizes():
    """Parameters of the rows, as the models have them."""
    with zoo.nn.init.skip_init():
        for name, options in (("rnnlm-librispeech", {}), ("crnn_vgg16_bn", {}), ("charlm-en-forward", {
                "vocabulary": Vocabulary([*SPECIAL, "\n", *(chr(0x4E00 + k) for k in range(938))])})):
            model = models.create(name, **options)
            assert sum(p.numel() for p in model.parameters()) == weights_of.get(name).parameters, name


# -- docTR

@pytest.mark.torch
def test_crnn_is_doctrs(torchvision, tmp_path):
    import torch
    torch.manual_seed(3)
    features = torchvision.models.vgg16_bn().features
    for k in [k for k, layer in enumerate(features) if isinstance(layer, torch.nn.MaxPool2d)][-3:]:
        features[k] = torch.nn.MaxPool2d((2, 1))
    decoder = torch.nn.LSTM(512, 128, 2, batch_first=True, bidirectional=True)
    linear = torch.nn.Linear(256, len(LEGACY_FRENCH) + 1)
    theirs = torch.nn.ModuleDict({"feat_extractor": features, "decoder": decoder, "linear": linear}).eval()
    torch.save(theirs.state_dict(), tmp_path / "crnn.pt")
    model = hub.load("crnn_vgg16_bn", tmp_path / "crnn.pt")
    assert model.vocabulary == LEGACY_FRENCH and len(FRENCH) == 126
    x = np.random.default_rng(0).standard_normal((2, 3, 32, 64), dtype=np.float32)
    with torch.no_grad(), zoo.no_grad():
        maps = features(torch.from_numpy(x))
        wanted = linear(decoder(maps.reshape(2, 512, -1).transpose(1, 2))[0])
        np.testing.assert_allclose(model(zoo.from_numpy(x)).numpy(), wanted, atol=1e-5)


def test_crnn_reads_the_best_path(monkeypatch):
    with zoo.nn.init.skip_init():
        model = CRNN("abc").eval()
    path = [0, 0, 3, 0, 3, 3, 2]                   # a a - a - - c
    logits = np.full((1, len(path), 4), -3.0, np.float32)
    logits[0, np.arange(len(path)), path] = 1.0
    logits[0, 3, 0] = -2.0
    monkeypatch.setattr(model, "forward", lambda x: zoo.from_numpy(logits))
    (word, probability), = model.read(zoo.zeros(1, 3, 32, 28))
    assert word == "aac" and probability == pytest.approx(1 / (1 + 3 * math.exp(-1)))
    with pytest.raises(ValueError, match="training mode"):
        model.train().read(zoo.zeros(1, 3, 32, 28))


# -- writing, scoring, embedding

@pytest.fixture(scope="module")
def small():
    zoo.manual_seed(5)
    return CharLM(hidden_size=32).eval()


def test_a_seed_writes_the_same_text(small):
    text = small.generate("The ", 40, seed=3)
    assert text.startswith("The ") and len(text) == 44 and small.generate("The ", 40, seed=3) == text
    assert small.generate("The ", 40, seed=4) != text
    assert "".join(small.stream("The ", 40, seed=3)) == text[4:]
    zoo.manual_seed(9)
    drawn = small.generate("", 40)
    assert small.generate("", 40) != drawn
    zoo.manual_seed(9)
    assert small.generate("", 40) == drawn
    assert small.generate("x", 0) == "x" and zoo.is_grad_enabled()
    pieces = small.stream("a", 2)
    next(pieces)
    assert zoo.is_grad_enabled()                   # not turned off between two characters


@pytest.mark.parametrize(("options", "words"), [
    ({"temperature": -1}, "temperature of at least 0"), ({"temperature": math.nan}, "temperature"),
    ({"top_k": 0}, "top_k of at least 1"), ({"top_p": 0.0}, r"top_p in \(0, 1\]"), ({"top_p": 1.5}, "top_p"),
    ({"length": -1}, "length of at least 0"),
])
def test_wrong_options_of_generate(options, words, small):
    with pytest.raises(ValueError, match=words):
        small.generate("a", **options)


def test_training_mode_and_empty_texts_are_refused():
    model = CharLM(hidden_size=4)
    for call in (lambda: model.generate("a"), lambda: model.score("a"), lambda: model.embed("a")):
        with pytest.raises(ValueError, match="training mode"):
            call()
    model.eval()
    with pytest.raises(ValueError, match="at least one token"):
        model.score("")
    with pytest.raises(ValueError, match="at least one text"):
        model.embed([])
    with pytest.raises(TypeError, match="wants a text as str, got bytes"):
        model.score(b"abc")
    with pytest.raises(ValueError, match="line feed"):
        CharLM(Vocabulary.of("abc"))


def test_sampling_has_the_probabilities_it_says():
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    u = (np.arange(1000) + 0.5) / 1000

    def shares(**options):
        return np.bincount([sampling.pick(logits, k, **options) for k in u], minlength=4) / 1000
    np.testing.assert_allclose(shares(), [0.4, 0.3, 0.2, 0.1], atol=1e-3)
    np.testing.assert_allclose(shares(top_k=2), [4 / 7, 3 / 7, 0, 0], atol=1e-3)
    np.testing.assert_allclose(shares(top_p=0.65), [4 / 7, 3 / 7, 0, 0], atol=1e-3)
    np.testing.assert_allclose(shares(never=[0]), [0, 1 / 2, 1 / 3, 1 / 6], atol=1e-3)
    squares = np.array([0.16, 0.09, 0.04, 0.01])
    np.testing.assert_allclose(shares(temperature=0.5), squares / squares.sum(), atol=1e-3)
    assert shares(temperature=0)[0] == 1


def test_a_long_text_is_scored_in_pieces(small, monkeypatch):
    text = "the quick brown fox " * 10
    whole = small.score(text)
    monkeypatch.setattr(language_model, "STEPS", 7)
    assert small.score(text) == pytest.approx(whole, abs=1e-6)


def test_features_of_a_text_do_not_depend_on_the_others(small):
    together = small.embed(["abc", "a longer text", "d"]).numpy()
    for row, text in zip(together, ["abc", "a longer text", "d"], strict=True):
        np.testing.assert_allclose(small.embed(text).numpy(), row, atol=1e-6)


@pytest.mark.cuda
def test_a_device_writes_and_scores_the_same(small):
    text = small.generate("The ", 5, seed=1)
    score, features = small.score("abc"), small.embed(["abc", "d"]).numpy()
    moved = CharLM(hidden_size=32)
    moved.load_state_dict(small.state_dict())
    moved = moved.to("cuda").eval()
    assert moved.generate("The ", 5, seed=1) == text and moved.score("abc") == pytest.approx(score, abs=1e-4)
    np.testing.assert_allclose(moved.embed(["abc", "d"]).cpu().numpy(), features, atol=1e-5)


# -- the model that ships

def test_the_row_of_the_shipped_model_tells_the_truth():
    model, file = hub.load("charlm_kjv", offline=True), hub.path("charlm_kjv")
    row, text = model.weights, kjv()
    assert model.score(text[len(text) * 9 // 10:]) == pytest.approx(row.bits_per_character, abs=5e-4)
    assert row.bits_per_character <= 2.0 and "zoo.train text" in row.note
    assert row.sha256 == hashlib.sha256(file.read_bytes()).hexdigest() and row.size == file.stat().st_size
    assert row.parameters == sum(p.numel() for p in model.parameters()) and row.num_classes == len(model.vocabulary)
    stored = checkpoint.read(file)["state_dict"].values()
    assert {a.dtype for a in stored} == {np.dtype(row.dtype)} == {np.dtype(np.float16)}
    shipped = [hub.path(row.model, row.tag).stat().st_size for row in weights_of.rows() if "package" in row.source]
    assert len(shipped) >= 2 and sum(shipped) <= 2_000_000


def test_generate_on_the_command_line(capsys):
    wanted = hub.load("charlm_kjv").generate("And God ", 30, seed=1, top_k=5)
    command = "generate", "charlm_kjv", "--prompt", "And God ", "--length", "30", "--seed", "1", "--top-k", "5"
    assert said(capsys, *command) == wanted + "\n"
    assert said(capsys, *command, "--json")["text"] == wanted
    assert "wants a character model" in said(capsys, "generate", "resnet20_digits", status=2)
    assert "top_p in (0, 1]" in said(capsys, "generate", "charlm_kjv", "--top-p", "7", status=2)


def test_generate_streams(monkeypatch):
    """Each character is flushed before the next one is computed."""
    states = []

    class Output(io.StringIO):
        def flush(self):
            states.append(self.getvalue())
    monkeypatch.setattr(sys, "stdout", Output())
    assert main(["generate", "charlm_kjv", "--prompt", "The ", "--length", "8", "--seed", "2"]) == 0
    assert [len(s) for s in states[:8]] == [5, 6, 7, 8, 9, 10, 11, 12]


# -- classifier and translator

@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("pooling", ["max", "mean", "last"])
def test_the_classifier_sees_no_padding(kind, pooling, rng):
    zoo.manual_seed(0)
    model = SequenceClassifier(20, 3, 6, 8, 2, kind, pooling=pooling).eval()
    tokens, lengths = rng.integers(0, 20, (3, 9)), [9, 1, 5]
    with zoo.no_grad():
        together = model(zoo.tensor(tokens), lengths).numpy()
        for row, n, wanted in zip(tokens, lengths, together, strict=True):
            np.testing.assert_allclose(model(zoo.tensor(row[None, :n])).numpy()[0], wanted, atol=1e-6)


def test_the_translator_sees_no_padding_and_translates_step_by_step(rng):
    zoo.manual_seed(1)
    model = Seq2Seq(20, 15, 6, 8).eval()
    source, lengths = rng.integers(0, 20, (3, 7)), [7, 2, 4]
    target = rng.integers(0, 15, (3, 5))
    with zoo.no_grad():
        together = model(zoo.tensor(source), zoo.tensor(target), lengths).numpy()
        for k, n in enumerate(lengths):
            alone = model(zoo.tensor(source[k: k + 1, :n]), zoo.tensor(target[k: k + 1])).numpy()[0]
            np.testing.assert_allclose(alone, together[k], atol=1e-6)
        for k, found in enumerate(model.translate(zoo.tensor(source), lengths, 6)):
            written = [0, *found.tokens, *([1] if len(found.tokens) < 6 else [])]
            logits = model(zoo.tensor(source[k: k + 1]), zoo.tensor([written[:-1]]), [lengths[k]])[0]
            best, tokens = zoo.nn.functional.log_softmax(logits, 1).max(1)
            assert tokens.tolist() == written[1:] and best.sum().item() == pytest.approx(found.score, abs=1e-5)
    with pytest.raises(ValueError, match="max_length of at least 1"):
        model.translate(zoo.tensor(source), max_length=0)


def test_the_translator_learns_to_reverse():
    zoo.manual_seed(0)
    model, generator = Seq2Seq(8, 10, 16, 32), np.random.default_rng(0)
    optimizer = zoo.optim.Adam(model.parameters(), 0.01)
    for _ in range(150):
        source = generator.integers(0, 8, (32, 4))
        target = np.concatenate([np.zeros((32, 1), int), source[:, ::-1] + 2, np.ones((32, 1), int)], 1)
        logits = model(zoo.tensor(source), zoo.tensor(target[:, :-1].copy()))
        loss = zoo.nn.functional.cross_entropy(logits.flatten(0, 1), zoo.tensor(target[:, 1:].reshape(-1).copy()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    source = generator.integers(0, 8, (50, 4))
    found = [t.tokens for t in model.eval().translate(zoo.tensor(source), max_length=10)]
    assert sum(a == (b[::-1] + 2).tolist() for a, b in zip(found, source, strict=True)) >= 45


@pytest.mark.parametrize(("make", "words"), [
    (lambda: SequenceClassifier(5, 2, kind="rnn"), "kind one of lstm, gru, got 'rnn'"),
    (lambda: SequenceClassifier(5, 2, pooling="sum"), "pooling one of max, mean, last"),
    (lambda: SequenceClassifier(5, 0), "num_classes of at least 1"),
    (lambda: Seq2Seq(5, 5, hidden_size=7), "even hidden_size"),
    (lambda: CharLM(hidden_size=0), "hidden_size of at least 1"),
])
def test_wrong_sizes(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_rnnlm_writes_tokens():
    zoo.manual_seed(0)
    model = RNNLM(30, 4, 8, 1, 6).eval()
    assert model.generate([5], 4, seed=0)[0] == 5 and model.embed([1, 2]).shape == (8,)
    assert model.embed([[1, 2], [3]]).shape == (2, 8)


# -- rows

def test_rows_say_what_was_seen():
    """shared/facts/hub.md, section 3."""
    rows = {row.name: row for row in weights_of.rows("charlm-en-*") + weights_of.rows("rnnlm-*")}
    assert len(rows) == 7 and {row.licence for row in rows.values()} == {"apache-2.0"}
    commit = "f1044133e5e3ba51452b5cd41ff0a5dddbadd3d3"
    for direction, md5 in (("forward", "468b3377455fa0311565d46865f55afb"),
                           ("backward", "1405948b125b4264fd17509d1b6175ca")):
        row = rows[f"charlm-en-{direction}.1billion"]
        assert row.source == f"hf://stanfordnlp/stanza-en/models/{direction}_charlm/1billion.pt@{commit}"
        assert row.md5 == md5 and row is weights_of.get(f"charlm-en-{direction}")
        for corpus in ("mimic", "pubmed"):
            other = rows[f"charlm-en-{direction}.{corpus}"]
            assert other.revision == "main" and "revision unseen" in other.note
    assert rows["rnnlm-librispeech.speechbrain"].source.endswith(
        "asr-crdnn-rnnlm-librispeech/lm.ckpt@0e7fdb936a05d8cdd3fd6c410445f3b7ebdc116f")
    assert all(row.sha256 is row.sha256_prefix is None for row in rows.values())      # nobody has seen them


@pytest.mark.parametrize("build", [
    lambda: CharLM(Vocabulary.of("\nabc"), 8, 16, is_forward=False),
    lambda: RNNLM(50, 8, 16, dnn_neurons=12, bos=3),
    lambda: SequenceClassifier(20, 3, 8, 16, 2, "gru", pooling="last", dropout=0.25),
    lambda: Seq2Seq(20, 30, 8, 16, bos=2, eos=3),
])
def test_saved_models_of_sequences_load_again(build, tmp_path):
    model = build().eval()
    folder = hub.save_pretrained(model, tmp_path / "mine", labels=["a", "b", "c"], licence="mit")
    again = hub.load(folder)
    assert type(again) is type(model) and repr(again) == repr(model) and again.labels == ("a", "b", "c")
    state = model.state_dict()
    assert all((state[key] == value).all() for key, value in again.state_dict().items()) and len(state) > 3
    same = ("is_forward", "vocabulary", "start", "pooling", "bos", "eos")
    assert all(getattr(again, name, None) == getattr(model, name, None) for name in same)
    card = (folder / "README.md").read_text()
    assert "A model of sequences" in card and "license: mit" in card and "image" not in card
    once_more = hub.load(hub.save_pretrained(again, tmp_path / "again"))
    assert (once_more.architecture, once_more.labels) == (again.architecture, again.labels)
