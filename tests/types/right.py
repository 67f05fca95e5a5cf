"""A script as users write it; type checkers take every line, and it runs."""

from collections.abc import Callable

from gradcli import engine
from gradcli.engine import Tensor, nn, optim
from gradcli.engine.nn import functional as F

engine.manual_seed(0)
x = engine.randn(4, 3)
target = engine.tensor([0, 2, 1, 0])
pictures = engine.rand(2, 3, 8, 8, dtype=engine.float32)

# Functions: by position, by name, and torch's `input=`.
parts: list[Tensor] = [
    engine.softmax(x, -1),
    engine.log_softmax(x, dim=1, dtype=engine.float64),
    engine.exp(input=x),
    engine.matmul(x, engine.eye(3)),
    engine.add(2.0, x),
    engine.where(x > 0, x, 0.0),
    engine.cat([x, x], 1),
    engine.stack((x, x)),
    engine.reshape(x, 3, 4),
    engine.permute(x, (1, 0)),
    engine.clamp(x, min=0.0, max=1.0),
    engine.sum(x, dim=(0, 1), keepdim=True),
    engine.mean(x, 0),
    engine.std(x, dim=1, correction=0),
    engine.gather(x, 1, engine.zeros(4, 1, dtype=engine.int64)),
    engine.einsum("ij,kj->ik", x, x),
    engine.argmax(x, dim=1),
    engine.arange(0, 10, 2),
    engine.linspace(0.0, 1.0, 5),
    engine.full((2, 3), 1.5),
    engine.zeros_like(x),
    engine.tril(engine.ones(3, 3)),
    engine.bernoulli(engine.rand(4)),
    engine.max(x),
    engine.nonzero(x > 0),
    engine.flatten(pictures, start_dim=1),
]
several: tuple[Tensor, ...] = engine.split(x, 1)
values, places = engine.max(x, 1)
ordered: Tensor = engine.sort(x, dim=0, descending=True).values
middle: Tensor = engine.median(x, 1).indices
top: Tensor = engine.topk(x, 2)[0]
axes: tuple[Tensor, ...] = engine.nonzero(x, as_tuple=True)
rows: int = x.size(0)
same: bool = engine.allclose(x, x, rtol=1e-3)

# torch.nn.functional.
activation: Callable[[Tensor], Tensor] = F.relu
losses: list[Tensor] = [
    F.cross_entropy(x, target, label_smoothing=0.1),
    F.mse_loss(x, x * 2, reduction="sum"),
    F.nll_loss(F.log_softmax(x, 1), target),
    F.binary_cross_entropy_with_logits(x, engine.rand(4, 3), pos_weight=engine.ones(3)),
]
layers: list[Tensor] = [
    activation(x),
    F.gelu(x, approximate="tanh"),
    F.linear(x, engine.randn(5, 3), None),
    F.conv2d(pictures, engine.randn(4, 3, 3, 3), padding="same"),
    F.max_pool2d(pictures, 2).relu(),
    F.max_pool2d(pictures, 2, return_indices=True)[1],
    F.layer_norm(x, (3,), eps=1e-6),
    F.group_norm(pictures, 3),
    F.dropout(x, 0.5, training=True),
    F.pad(x, (1, 1), value=0.0),
    F.one_hot(target, 3),
    F.scaled_dot_product_attention(x, x, x, is_causal=True),
    F.interpolate(pictures, scale_factor=2.0, mode="nearest"),
    F.embedding(target, engine.randn(3, 4)),
]

# Methods and operators.
y: Tensor = (x @ x.T + 1 - 2 * x.sum()).reshape(-1).abs().clamp_(max=3.0)
y = 1.0 / (y + 1) ** 2
y += 1
z = x.view(3, 4).transpose(0, 1).unsqueeze(0).expand(2, 4, 3).permute(0, 2, 1).contiguous()
smallest: Tensor = x.min(dim=0).values
x.to(engine.float64).masked_fill(x > 0, 0.0).norm(dim=1)


class Classifier(nn.Module):
    """Layers with options, by position and by name."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(3, width, bias=True)
        self.norm = nn.LayerNorm(width, eps=1e-5)
        self.out = nn.Sequential(nn.Dropout(0.1), nn.Linear(width, 3))

    def forward(self, input: Tensor) -> Tensor:
        """(N, 3) to (N, 3)."""
        logits: Tensor = self.out(F.gelu(self.norm(self.hidden(input))))
        return logits


model = Classifier(8)
optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, betas=(0.9, 0.99))
optim.SGD([{"params": model.parameters(), "lr": 0.5}], 0.1, 0.9, nesterov=True, maximize=True)
schedule = optim.lr_scheduler.StepLR(optimizer, 30, gamma=0.5)
optim.lr_scheduler.LambdaLR(optimizer, [lambda epoch: 1 / (1 + epoch)]).step()
rates: list[float] = schedule.get_last_lr()
for _ in range(2):
    loss = F.cross_entropy(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with engine.no_grad():
    accuracy = (model(x).argmax(1) == target).float().mean().item()
