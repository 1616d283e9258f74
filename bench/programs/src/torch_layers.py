"""Layers of a network without gradients: each operation returns a new tensor of 64 MiB."""
import torch

torch.set_num_threads(1)
generator = torch.Generator().manual_seed(1)
scale = torch.rand(4096, generator=generator)
shift = torch.rand(4096, generator=generator)


def layer(values):
    centred = values - values.mean(dim=1, keepdim=True)
    normal = centred / (centred.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
    return torch.relu(normal * scale + shift)


with torch.no_grad():
    total = 0.0
    for batch in range(4):
        values = torch.rand(4096, 4096, generator=generator)
        for _ in range(3):
            values = layer(values)
        total += float(values.sum())
print(f"{total:.0f}")
