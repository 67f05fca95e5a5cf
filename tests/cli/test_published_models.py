"""Folders of published language models on the command line: used, trained on, and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from bpe_files import STORY
from points import Ended, gradcli
from published_folders import CONFIGS, GPT2, LLAMA, write_folder, write_weights

import gradcli as package
from gradcli import engine
from gradcli.data.bpe.tokenizer import tokenizer_at
from gradcli.engine import nn
from gradcli.engine.nn.generation import generate
from gradcli.errors import CheckpointError
from gradcli.train.published.loading import take_over_published
from gradcli.train.safetensors_file import read
from gradcli.train.yaml_text import inline

__all__ = ["gradcli"]

PROMPT = ("--prompt", "The old king", "--tokens", "6", "--temperature", "0", "--json")


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_folder_writes_on_and_is_trained_further(
    gradcli: Callable[..., Ended], kind: str
) -> None:
    write_folder(Path("model"), CONFIGS[kind], shards=2, prefix="transformer." * (kind == "gpt2"))
    Path("story.txt").write_text(STORY * 40, encoding="utf-8")
    before = gradcli("predict", "model", *PROMPT)
    assert package.load("model").generate("The old king", 6, temperature=0) == before.json["text"]
    assert gradcli("init", "model", "--data", "story.txt").code == 0
    checked = gradcli("check", "model.yaml")
    assert checked.code == 0, checked.err
    frozen = ("-s", 'freeze=["0.*"]', "-s", "optim.lr=0.01", "-s", "train.steps=30")
    frozen += ("-s", "train.eval_every=10")
    trained = gradcli("train", "model.yaml", "--json", "--no-report", *frozen)
    assert trained.code == 0, trained.err
    run = Path(trained.json["run"])
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    losses = [record["val.loss"] for record in log if "val.loss" in record]
    assert losses[-1] < losses[0]
    [checkpoint] = (run / "checkpoints").glob("*30.safetensors")
    name = "wte.weight" if kind == "gpt2" else "model.embed_tokens.weight"
    [embedding] = [
        one.data
        for file in Path("model").glob("*.safetensors")
        for key, one in read(file).tensors.items()
        if key.removeprefix("transformer.") == name
    ]
    kept = bytes(read(checkpoint).tensors["model.0.weight"].data)
    assert bytes(embedding)[: len(kept)] == kept
    assert gradcli("predict", str(run), *PROMPT).code == 0


def test_a_folder_is_measured_on_texts_alone(gradcli: Callable[..., Ended]) -> None:
    write_folder(Path("model"), LLAMA)
    Path("new.txt").write_text(STORY, encoding="utf-8")
    assert gradcli("eval", "model", "--data", "new.txt").code == 0
    ended = gradcli("eval", "model")
    assert (ended.code, "--data FILE" in ended.err) == (2, True)


def test_a_folder_called_like_a_template_is_meant_where_a_text_is_named(
    gradcli: Callable[..., Ended],
) -> None:
    write_folder(Path("gpt2"), GPT2)
    Path("story.txt").write_text(STORY * 40, encoding="utf-8")
    assert gradcli("init", "gpt2", "--data", "story.txt").code == 0
    assert "from: gpt2" in Path("gpt2.yaml").read_text()
    assert gradcli("train", "gpt2.yaml", "--no-report", "--max-steps", "2").code == 0
    assert gradcli("predict", "gpt2-tuned", *PROMPT).code == 0


def spoil_config(key: str, value: object) -> Callable[[], None]:
    def spoil() -> None:
        path = Path("model/config.json")
        path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))

    return spoil


def write(name: str, text: str) -> Callable[[], None]:
    def spoil() -> None:
        Path("model", name).write_text(text)

    return spoil


def remove(name: str) -> Callable[[], None]:
    return lambda: Path("model", name).unlink()


def cut_embedding() -> None:
    path = Path("model/model.safetensors")
    tensors = {
        name: engine.zeros(*one.shape[:1], 3) if name == "wte.weight" else engine.zeros(*one.shape)
        for name, one in read(path).tensors.items()
    }
    write_weights(path, tensors)


def call_a_tensor(name: str) -> Callable[[], None]:
    def spoil() -> None:
        path = Path("model/model.safetensors")
        tensors = {key: engine.zeros(*one.shape) for key, one in read(path).tensors.items()}
        write_weights(path, {**tensors, name: engine.zeros(1)})

    return spoil


def pickled() -> None:
    Path("model/model.safetensors").rename("model/pytorch_model.bin")


def index_of(name: str) -> Callable[[], None]:
    def spoil() -> None:
        remove("model.safetensors")()
        write("model.safetensors.index.json", json.dumps({"weight_map": {"a": name}}))()

    return spoil


WRONG: list[tuple[Callable[[], None], int, str]] = [
    (spoil_config("model_type", "bert"), 3, "model_type is 'bert'; read are gpt2, llama"),
    (spoil_config("n_embd", "wide"), 3, "a whole number from 1 to 16777216 under 'n_embd'"),
    (spoil_config("n_layer", 1025), 3, "a whole number from 1 to 1024 under 'n_layer'"),
    (spoil_config("n_head", 5), 3, "5 under 'n_head' does not divide the width 24 evenly"),
    (spoil_config("layer_norm_epsilon", -1), 3, "below 1e12 under 'layer_norm_epsilon'"),
    (spoil_config("layer_norm_epsilon", ["long"] * 9000), 3, "'long', 'long', ...]"),
    (spoil_config("tie_word_embeddings", 1), 3, "true or false under 'tie_word_embeddings'"),
    (spoil_config("activation_function", "mish"), 3, "activation_function is 'mish'"),
    (spoil_config("activation_function", "silu"), 3, "read are gelu_new, gelu_pytorch_tanh, gelu"),
    (spoil_config("eos_token_id", 50256), 3, "eos_token_id of config.json is 50256, and"),
    (spoil_config("eos_token_id", "end"), 3, "the number of a token, or a list of them under"),
    (spoil_config("scale_attn_weights", False), 3, "which is not built here"),
    (spoil_config("vocab_size", 20), 3, "they do not belong together"),
    (write("config.json", "{"), 3, "config.json: not JSON"),
    (write("config.json", "[]"), 3, "config.json: expected an object"),
    (write("tokenizer.json", "{}"), 3, "tokenizer.json: not a tokenizer"),
    (remove("tokenizer.json"), 3, "expected tokenizer.json"),
    (remove("model.safetensors"), 7, "put the published weights there"),
    (remove("config.json"), 3, "model holds no config.json; a model is a folder with"),
    (pickled, 7, "pytorch_model.bin is in a form of PyTorch that may run code"),
    (spoil_config("model_type", None), 3, "model_type is missing; read are gpt2, llama"),
    (write("model.safetensors", "no"), 7, "model.safetensors"),
    (cut_embedding, 7, "wte.weight"),
    (
        spoil_config("n_layer", 3),
        7,
        "2.2.norm1.weight [24] is h.2.ln_1.weight there, which",
    ),
    (
        spoil_config("n_inner", 100),
        7,
        "[100, 24] in the model, h.0.mlp.c_fc.weight [24, 96]",
    ),
    (
        spoil_config("n_positions", 40),
        7,
        "1.weight is [40, 24] in the model, wpe.weight [32, 24]",
    ),
    (call_a_tensor("long " * 9000), 7, "says nothing of: long long long"),
    (index_of("other.safetensors"), 7, "the shard other.safetensors is not there"),
    (index_of("é" * 200), 7, "the shard ééé"),
    (index_of("../x.safetensors"), 7, "expected names of files beside it"),
]


@pytest.mark.parametrize(("spoil", "code", "message"), WRONG)
def test_what_is_wrong_with_a_folder_is_one_sentence(
    gradcli: Callable[..., Ended], spoil: Callable[[], None], code: int, message: str
) -> None:
    write_folder(Path("model"), GPT2)
    spoil()
    ended = gradcli("predict", "model", *PROMPT[:-1])
    assert (ended.code, ended.err.count("error[")) == (code, 1), ended.err
    assert len(ended.err) < 2000
    assert message in " ".join(ended.err.split())


WRONG_LLAMAS = [
    (
        "num_key_value_heads",
        3,
        3,
        "3 under 'num_key_value_heads' does not divide the number of",
    ),
    ("rope_parameters", 5000, 3, "expected an object under 'rope_parameters', found 5000"),
    ("rope_parameters", {"rope_type": "yarn"}, 3, "rope_type is 'yarn', which is not built here"),
    ("rope_parameters", {"factor": 4.0}, 3, "factor is 4.0, which is not built here"),
    ("rope_parameters", {"rope_theta": -1}, 3, "under 'rope_theta', found -1"),
    ("head_dim", 5, 3, "5 features a head, where rotary positions turn pairs"),
    ("head_dim", 1 << 24, 3, "16777216 features a head, of which at most 65536 are read"),
    ("hidden_size", 25, 7, "0.weight is [372, 25] in the model, model.embed_tokens.weight"),
    ("hidden_act", "gelu", 3, "hidden_act is 'gelu'; read are silu, swish"),
    ("head_dim", 8, 7, "qkv.weight is [64, 24] in the model"),
    ("model_type", "qwen2", 7, "model.layers.0.self_attn.q_proj.bias there, which is missing"),
    ("model_type", "qwen3", 7, "model.layers.0.self_attn.q_norm.weight there, which is missing"),
]


@pytest.mark.parametrize(("key", "value", "code", "message"), WRONG_LLAMAS)
def test_what_is_wrong_with_a_llama_is_one_sentence(
    gradcli: Callable[..., Ended], key: str, value: object, code: int, message: str
) -> None:
    write_folder(Path("model"), {**LLAMA, "tie_word_embeddings": True})
    spoil_config(key, value)()
    ended = gradcli("predict", "model", *PROMPT[:-1])
    assert (ended.code, ended.err.count("error[")) == (code, 1), ended.err
    assert message in " ".join(ended.err.split())


def test_each_part_of_a_weight_has_its_own_size(gradcli: Callable[..., Ended]) -> None:
    weights = write_folder(Path("model"), LLAMA)
    query, key = (f"model.layers.0.self_attn.{letter}_proj.weight" for letter in "qk")
    exchanged = {**weights, query: weights[key], key: weights[query]}
    write_weights(Path("model/model.safetensors"), exchanged)
    ended = gradcli("predict", "model", *PROMPT[:-1])
    assert ended.code == 7
    said = " ".join(ended.err.split())
    assert (
        "[12, 24] and [24, 24] and [12, 24] there, not [24, 24] and [12, 24] and [12, 24]" in said
    )


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_part_of_a_folder_is_refused_with_the_folder(
    gradcli: Callable[..., Ended], name: str
) -> None:
    write_folder(Path("model"), GPT2)
    Path("story.txt").write_text(STORY * 40, encoding="utf-8")
    assert gradcli("init", "model", "--data", "story.txt").code == 0
    for command in (("check", "model.yaml"), ("train", "model.yaml", "--no-report")):
        ended = gradcli(*command, "-s", f"pretrained.from=model/{name}")
        assert ended.code == 7
        assert "is a part of a published model; give its folder" in ended.err


def test_init_needs_the_text_that_a_model_is_to_learn(gradcli: Callable[..., Ended]) -> None:
    write_folder(Path("model"), GPT2)
    Path("short.txt").write_text("a b c")
    Path("story.txt").write_text(STORY)
    for words, message in (
        (("model",), "name the text that it is to learn"),
        (("model", "--data", "short.txt"), "a text of 5 tokens"),
        (("model", "--data", "no.txt"), "no.txt"),
        (("story.txt", "--data", "story.txt"), "--data is the text for a published model"),
        (("mnist", "--data", "story.txt"), "--data is the text for a published model"),
        (("--data", "story.txt"), "--data is of a config to write"),
        (("model", "--target", "x"), "a published model: each next token"),
    ):
        ended = gradcli("init", *words)
        assert ended.code in (2, 3), words
        assert message in " ".join(ended.err.split()), words


def test_tensors_that_nothing_here_is_made_of_are_told(gradcli: Callable[..., Ended]) -> None:
    weights = write_folder(Path("model"), GPT2)
    Path("story.txt").write_text(STORY * 40, encoding="utf-8")
    assert gradcli("init", "model", "--data", "story.txt").code == 0
    config = Path("model.yaml").read_text()
    Path("model.yaml").write_text(config.replace("times: 2", "times: 1"))
    ended = gradcli("train", "model.yaml", "--max-steps", "1", "--no-report")
    assert ended.code == 0
    assert "12 tensors there are not used: h.1." in " ".join(ended.err.split())
    path = Path("model/model.safetensors")
    masks = {"h.0.attn.bias": engine.zeros(1, 1, 4, 4), "lm_head.weight": weights["wte.weight"]}
    write_weights(path, {**weights, **masks})
    assert gradcli("predict", "model", *PROMPT).code == 0
    write_weights(path, {**weights, "h.0.attn.q_norm.weight": engine.zeros(6)})
    ended = gradcli("predict", "model", *PROMPT[:-1])
    assert ended.code == 7
    assert "1 tensor that config.json says nothing of: h.0.attn.q_norm.weight" in ended.err


def test_weights_that_do_not_fit_are_all_named_and_none_is_copied(
    gradcli: Callable[..., Ended],
) -> None:
    weights = write_folder(Path("model"), GPT2)
    model = package.load("model").model
    before = {name: one.tolist() for name, one in model.state_dict().items()}
    spoilt = {**weights, "h.1.mlp.c_fc.weight": weights["h.1.mlp.c_fc.weight"].T.contiguous()}
    del spoilt["ln_f.bias"]
    write_weights(Path("model/model.safetensors"), spoilt)
    with pytest.raises(CheckpointError, match="2 of 28 weights do not come from model") as error:
        take_over_published(model, Path("model"), before.keys())
    lines = " ".join([error.value.message, *error.value.notes])
    assert "h.1.mlp.c_fc.weight [96, 24] there" in lines
    assert "ln_f.bias there, which is missing" in lines
    assert {name: one.tolist() for name, one in model.state_dict().items()} == before


def test_weights_of_another_shape_are_told_before_training(gradcli: Callable[..., Ended]) -> None:
    write_folder(Path("model"), GPT2)
    Path("story.txt").write_text(STORY * 40, encoding="utf-8")
    assert gradcli("init", "model", "--data", "story.txt").code == 0
    config = Path("model.yaml").read_text()
    Path("model.yaml").write_text(config.replace("times: 2", "times: 3"))
    ended = gradcli("train", "model.yaml", "--no-report")
    assert (ended.code, "h.2.ln_1.weight there, which is missing" in ended.err) == (7, True)
    ended = gradcli("train", "model.yaml", "-s", "pretrained.optimizer=true", "--no-report")
    assert (ended.code, "is a published model" in ended.err) == (7, True)


@pytest.mark.parametrize("listed", [False, True])
def test_a_text_ends_with_the_token_that_the_model_was_published_with(
    gradcli: Callable[..., Ended], listed: bool
) -> None:
    write_folder(Path("model"), GPT2)
    Path("story.txt").write_text(STORY * 40, encoding="utf-8")
    how = ("predict", "model", "--prompt", "The old king", "--tokens", "12", "--temperature", "0")
    whole = gradcli(*how, "--ignore-end", "--json").json
    model, tokenizer = package.load("model").model, tokenizer_at(Path("model"))
    prompt = tokenizer.encode("The old king")
    tokens = list(generate(model, prompt, 12, 32, temperature=0.0))
    end = tokens[5]
    spoil_config("eos_token_id", [end, 0] if listed else end)()
    ended = gradcli(*how, "--json").json
    assert whole["tokens"] == 12
    assert ended["tokens"] == tokens.index(end) + 1
    text = tokenizer.decode(tokens[: tokens.index(end)])
    assert ended["text"].rstrip("\ufffd") == text.rstrip("\ufffd")
    assert package.load("model").generate("The old king", 12, temperature=0) == ended["text"]
    assert gradcli("init", "model", "--data", "story.txt").code == 0
    assert f"end: {inline(tokenizer.names[end])}" in Path("model.yaml").read_text()


@pytest.mark.parametrize(
    ("kind", "old", "new", "message"),
    [
        ("gpt2", "heads: 4", "heads: 2", "heads is 2 in the model, 4 there"),
        ("gpt2", "gelu_tanh", "gelu", "activation is gelu in the model, gelu_tanh there"),
        ("gpt2", "gelu_tanh", "relu", "activation is relu in the model, gelu_tanh there"),
        ("gpt2", "heads: 4", "heads: 4, norm: post", "norm is post in the model, pre there"),
        ("gpt2", "eps: 1.0e-05}\n  # (x", "eps: 1.0e-06}\n  # (x", "eps is 1e-06 in the model"),
        ("gpt2", "heads: 4", "heads: 4, alibi: true", "alibi is True in the model, False there"),
        ("llama", "rotary_base: 5000.0", "rotary_base: 500.0", "rotary_base is 500.0 in the model"),
        ("llama", "rotary_form: half", "rotary_form: interleaved", "rotary_form is interleaved"),
        ("qwen3", "qk_norm: rms", "qk_norm: rms_plain", "qk_norm is rms_plain in the model, rms"),
    ],
)
def test_a_model_that_computes_something_else_is_refused_and_checked(
    gradcli: Callable[..., Ended], kind: str, old: str, new: str, message: str
) -> None:
    write_folder(Path("model"), CONFIGS[kind])
    Path("story.txt").write_text(STORY * 40, encoding="utf-8")
    assert gradcli("init", "model", "--data", "story.txt").code == 0
    config = Path("model.yaml").read_text()
    assert old in config, config
    Path("model.yaml").write_text(config.replace(old, new))
    for command in (("check",), ("train", "--no-report", "--max-steps", "1")):
        ended = gradcli(command[0], "model.yaml", *command[1:])
        said = " ".join(ended.err.split())
        assert (ended.code, message in said) == (7, True), said
        assert "--> model.yaml:" in said


def test_newer_files_have_the_base_of_positions_elsewhere(gradcli: Callable[..., Ended]) -> None:
    write_folder(Path("model"), LLAMA)
    before = gradcli("predict", "model", *PROMPT).json["text"]
    spoil_config("rope_theta", 77.0)()
    assert gradcli("predict", "model", *PROMPT).json["text"] != before
    spoil_config("rope_parameters", {"rope_type": "default", "rope_theta": LLAMA["rope_theta"]})()
    assert gradcli("predict", "model", *PROMPT).json["text"] == before


@pytest.mark.parametrize(
    ("keys", "seen"),
    [
        ({"use_sliding_window": False}, "all"),
        ({"use_sliding_window": True}, "all"),  # from layer 28 on
        ({"use_sliding_window": True, "max_window_layers": 2}, "all"),
        ({"use_sliding_window": True, "max_window_layers": 0}, "window"),
        ({"layer_types": ["sliding_attention"] * 2}, "window"),
        ({"layer_types": ["full_attention"] * 2, "use_sliding_window": True}, "all"),
        ({"use_sliding_window": True, "max_window_layers": 1}, "windows in some layers alone"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "windows in some layers alone"),
        ({"layer_types": ["linear_attention"] * 2}, "not built here: ['linear_attention', 'l"),
        ({"use_sliding_window": True, "max_window_layers": "two"}, "max_window_layers is 'two'"),
        ({"layer_types": ["sliding_attention"] * 2, "sliding_window": -1}, "'sliding_window'"),
    ],
)
def test_windows_are_those_of_the_layers_that_have_them(
    gradcli: Callable[..., Ended], keys: dict[str, object], seen: str
) -> None:
    write_folder(Path("model"), {**CONFIGS["qwen2"], "sliding_window": 5, **keys})
    ended = gradcli("predict", "model", *PROMPT[:-1])
    if seen in ("all", "window"):
        blocks = package.load("model").model.modules()
        windows = {one.window for one in blocks if isinstance(one, nn.SelfAttention)}
        assert (ended.code, windows) == (0, {5 if seen == "window" else None})
    else:
        assert (ended.code, seen in ended.err) == (3, True), ended.err
