/** Colours of boxes: by the file that contains the code, or by how much a box differs. */
import { changeOf } from "../layout/amounts";
import { color } from "../theme";
import type { FlameData } from "./flame";

export type Filler = (node: number) => string;

export const filler = (data: FlameData): Filler => (data.amounts.base ? byChange(data) : byModule(data));

const HUES = [28, 205, 150, 265, 340, 95, 50, 180];
const SHADES = 5;

/**
 * Each file gets a hue, the heaviest first, so that neighbours differ and a reload gives the same
 * picture.
 */
function byModule({ tree, frames, amounts: { widths } }: FlameData): Filler {
  const weights = new Map<string, number>();
  const own = widths.slice();
  for (let node = tree.count - 1; node > 0; node -= 1) own[tree.parents[node]!]! -= widths[node]!;
  for (let node = 1; node < tree.count; node += 1) {
    if (!(own[node]! > 0)) continue;
    const module = frames[tree.frames[node]!]!.module;
    weights.set(module, (weights.get(module) ?? 0) + own[node]!);
  }
  const order = [...weights].filter(([module]) => module !== "").sort((a, b) => b[1] - a[1]);
  const hues = new Map(order.map(([module], index) => [module, HUES[index % HUES.length]!]));
  const none = color("flame-none");
  const [saturation, light] = [color("flame-saturation"), Number.parseFloat(color("flame-light"))];
  return (node) => {
    const { name, module } = frames[tree.frames[node]!] ?? { name: "", module: "" };
    if (node === 0 || module === "") return none;
    const shade = (name.length * 7 + tree.depths[node]! * 3) % SHADES;
    return `hsl(${hues.get(module) ?? HUES[module.length % HUES.length]!} ${saturation} ${light + shade * 1.4}%)`;
  };
}

/** Red for growth, blue for decrease, by size; pale if the change may be chance. */
function byChange({ amounts: { base, chosen, samples } }: FlameData): Filler {
  const none = color("flame-none");
  const [saturation, light, strong] = ["diff-saturation", "flame-light", "diff-strong"].map((name) => Number.parseFloat(color(name))) as [number, number, number];
  const whole: [number, number] = [base![0]!, chosen![0]!];
  return (node) => {
    const { relative, errors } = changeOf(base![node]!, chosen![node]!, whole, samples);
    const sure = Math.max(0, Math.min(1, (Math.abs(errors) - 1) / 2));
    const strength = Math.round(Math.sqrt(Math.abs(relative)) * sure * 20) / 20;
    if (strength < 0.05) return none;
    return `hsl(${relative > 0 ? 6 : 212} ${saturation * (0.2 + 0.8 * strength)}% ${light + (strong - light) * strength}%)`;
  };
}
