"""Where gradcli means to differ from torch at special values, by rows of docs/differences.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """Ops that differ in one part of their answers, and the kinds of values at which any does."""

    row: str  # how the row of docs/differences.md begins
    part: str
    kinds: str
    ops: str
    always: bool = True  # or only with some of torch's instruction sets, which round differently


DIFFERENCES = (
    *(
        Difference("`gelu` where x is far below 0", part, "17", "gelu")
        for part in ("value", "gradient", "recorded gradient")
    ),
    Difference(
        "Digits where differences cancel",
        "gradient",
        "smallest small mixed",
        "addcdiv bilinear cosine_embedding_loss cosine_similarity softmax softmin",
    ),
    Difference(
        "Digits where differences cancel",
        "second gradient",
        "zero small 17",
        "acos asin binary_cross_entropy logsigmoid sigmoid",
    ),
    Difference(
        "Digits where differences cancel",
        "second gradient",
        "1e4",
        "multilabel_soft_margin_loss",
        always=False,
    ),
    Difference(
        "Infinite logits",
        "gradient",
        "infinity small 1e4 1e30 mixed",
        "multilabel_soft_margin_loss soft_margin_loss",
    ),
    Difference(
        "Infinite logits",
        "recorded gradient",
        "small 1e4",
        "multilabel_soft_margin_loss soft_margin_loss",
    ),
    Difference(
        "Infinite logits",
        "second gradient",
        "17 1e4",
        "soft_margin_loss",
    ),
    Difference(
        "Infinite logits",
        "value",
        "infinity 1e4 1e30 mixed",
        "binary_cross_entropy_with_logits multilabel_soft_margin_loss soft_margin_loss",
    ),
    Difference(
        "Infinity to a whole number",
        "value",
        "infinity NaN 1e30 mixed",
        "int long",
    ),
    Difference(
        "Norms of layers",
        "gradient",
        "infinity 1e30 mixed",
        "group_norm instance_norm layer_norm",
    ),
    Difference(
        "Norms of layers",
        "value",
        "infinity 1e30 mixed",
        "batch_norm group_norm instance_norm layer_norm",
    ),
    Difference(
        "Padding of a convolution",
        "gradient",
        "infinity NaN mixed",
        "conv1d conv2d",
    ),
    Difference(
        "Padding of a convolution",
        "value",
        "infinity NaN mixed",
        "conv_transpose1d conv_transpose2d",
    ),
    Difference(
        "Products that overflow",
        "value",
        "1e30",
        "cross",
    ),
    Difference(
        "Second gradients at a kink",
        "second gradient",
        "zero",
        "prelu",
    ),
    Difference(
        "Slopes where torch has NaN",
        "gradient",
        "infinity NaN zero subnormal smallest mixed",
        "atan2 kl_div mish nanmean softsign",
    ),
    Difference(
        "Slopes where torch has NaN",
        "second gradient",
        "zero 1e4",
        "atan2 cosine_similarity mish norm normalize pow vector_norm",
    ),
    Difference(
        "Ties in `topk`",
        "gradient",
        "infinity NaN mixed",
        "adaptive_max_pool1d adaptive_max_pool1d_with_indices adaptive_max_pool2d "
        "adaptive_max_pool2d_with_indices kthvalue max_pool1d max_pool1d_with_indices "
        "max_pool2d max_pool2d_with_indices nanmedian topk",
    ),
    Difference(
        "Ties in `topk`",
        "value",
        "infinity NaN zero subnormal smallest small 17 1e4 1e30 mixed",
        "adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices kthvalue "
        "max_pool1d_with_indices max_pool2d_with_indices nanmedian topk",
    ),
    Difference(
        "`amax`, `amin`",
        "gradient",
        "NaN mixed",
        "amax amin aminmax scatter_reduce",
    ),
    Difference(
        "`binary_cross_entropy` of an input",
        "refusal",
        "infinity NaN subnormal 17 1e4 1e30 mixed",
        "binary_cross_entropy gaussian_nll_loss",
    ),
    Difference(
        "`fmod`, `remainder` by",
        "value",
        "subnormal mixed",
        "fmod fmod_ remainder remainder_",
    ),
    Difference(
        "`multi_margin_loss`, `multilabel_margin_loss`",
        "gradient",
        "infinity NaN mixed",
        "multi_margin_loss multilabel_margin_loss",
    ),
    Difference(
        "`multi_margin_loss`, `multilabel_margin_loss`",
        "value",
        "infinity NaN mixed",
        "multi_margin_loss multilabel_margin_loss",
    ),
    Difference(
        "`prod`, `cumprod`",
        "gradient",
        "infinity NaN subnormal smallest mixed",
        "cumprod prod",
    ),
    Difference(
        "`prod`, `cumprod`",
        "second gradient",
        "small",
        "prod",
    ),
    Difference(
        "`relu`, `abs`, `clamp`",
        "gradient",
        "infinity NaN mixed",
        "abs celu clamp clamp_max clamp_min clip elu hardsigmoid hardswish hardtanh l1_loss "
        "leaky_relu "
        "margin_ranking_loss norm pairwise_distance relu relu6 selu triplet_margin_loss "
        "triplet_margin_with_distance_loss",
    ),
    Difference(
        "`scaled_dot_product_attention`: keys",
        "gradient",
        "infinity NaN mixed",
        "scaled_dot_product_attention",
    ),
    Difference(
        "`scaled_dot_product_attention`: keys",
        "value",
        "infinity NaN mixed",
        "scaled_dot_product_attention",
    ),
    Difference(
        "`sign`",
        "value",
        "NaN mixed",
        "sign sign_",
    ),
    Difference(
        "`std_mean`, `var_mean`",
        "value",
        "infinity mixed",
        "std_mean var_mean",
    ),
)
