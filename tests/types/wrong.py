"""What type checkers refuse; nobody runs it."""

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.engine.nn import functional as F

x = engine.ones(2, 3)
model = nn.Linear(3, 3)

engine.softmaxx(x, dim=1)  # refused: no such function
engine.softmax(x, 1, nonsense=1)  # refused: no such option
engine.sum(x, dim="rows")  # refused: the type of an option
engine.exp("x")  # refused: a text for a Tensor
engine.matmul(x)  # refused: the number of inputs
optim.AdamW(model.parameters(), learning_rate=0.1)  # refused: no such option of an optimizer
optim.SGD(model.parameters(), lr="fast")  # refused: the type of an option of an optimizer
optim.lr_scheduler.StepLR(optim.SGD(model.parameters()), step=3)  # refused: no such option
optim.Lion(model.parameters(), 1e-4, (0.9, 0.99), 0.0, True)  # refused: maximize goes by name
nn.Linear(3, 3, biass=False)  # refused: no such option of a layer
engine.allclose(x, x).mean()  # refused: True or False is no Tensor
F.relu(x, nonsense=1)  # refused: no such option
x.reshape("wide")  # refused: the type of an option of a method
engine.split(x, 1).exp()  # refused: a tuple is no Tensor
F.exp(x)  # refused: no function of torch.nn.functional
x.softmaxx(1)  # refused: no such method
x + "1"  # refused: a text for a Tensor or a number
x @ 2.0  # refused: a number for a Tensor
engine.max(x, 1).exp()  # refused: values and indices are no Tensor
F.max_pool2d(x, 2, return_indices=True).relu()  # refused: two Tensors are no Tensor
