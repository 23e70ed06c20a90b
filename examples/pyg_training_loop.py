"""Train a model of your own in plain PyTorch Geometric on a condensed graph, and test it on the whole one.

    python examples/pyg_training_loop.py

Nothing below the first lines of ``main`` is gcond's: a condensed graph is a ``Data`` like any other, in which every
node is a training node and edges have weights.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import gcond


class Net(torch.nn.Module):
    """Any model will do, as long as it passes the edge weights on: A' is weighted."""

    def __init__(self, features: int, classes: int, hidden: int = 64) -> None:
        super().__init__()
        self.first = GCNConv(features, hidden)
        self.second = GCNConv(hidden, classes)

    def forward(self, data: Data) -> torch.Tensor:
        h = self.first(data.x, data.edge_index, data.edge_weight).relu()
        return self.second(h, data.edge_index, data.edge_weight)


@torch.no_grad()
def accuracy(model: Net, data: Data, mask: torch.Tensor) -> float:
    model.eval()
    return float((model(data).argmax(1) == data.y)[mask].float().mean())


def main() -> None:
    graph = gcond.load("synthetic:small,nodes=900")
    small = gcond.condense(graph, nodes=30, epochs=3, init="propagated-means")  # a file works too: CondensedGraph.load
    train, whole = small.to_pyg(), graph.to_pyg()

    torch.manual_seed(0)
    model = Net(graph.num_features, graph.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best, state = 0.0, {}
    for _ in range(100):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(train), train.y).backward()
        optimizer.step()
        # The epoch is chosen by the validation nodes of the real graph; the last epoch is often worse.
        if (found := accuracy(model, whole, whole.val_mask)) >= best:
            best, state = found, {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.load_state_dict(state)
    print(f"trained on {small.num_nodes} of {graph.num_nodes} nodes")
    print(f"validation {best:.1%}, test {accuracy(model, whole, whole.test_mask):.1%}")


if __name__ == "__main__":
    main()
