/** A canvas that follows its container's width, the screen's density and the theme. */
import { h, type Attributes } from "../dom";
import { onTheme } from "../theme";

export interface Surface {
  canvas: HTMLCanvasElement;
  redraw: () => void;
}

/** `draw` gets a context in CSS pixels; `height` may depend on the width. */
export function surface(
  attributes: Attributes,
  height: (width: number) => number,
  draw: (context: CanvasRenderingContext2D, width: number, height: number) => void,
): Surface {
  const canvas = h("canvas", attributes);
  const redraw = () => {
    const width = canvas.parentElement?.clientWidth ?? 0;
    if (width === 0) return;
    const tall = height(width);
    const density = Math.max(1, devicePixelRatio);
    canvas.width = Math.round(width * density);
    canvas.height = Math.round(tall * density);
    canvas.style.height = `${tall}px`;
    const context = canvas.getContext("2d");
    if (!context) return;
    context.scale(density, density);
    context.clearRect(0, 0, width, tall);
    draw(context, width, tall);
  };
  whenSized(canvas, redraw);
  onTheme(redraw);
  return { canvas, redraw };
}

/** Calls `render` once the element's parent has a width, and whenever that changes. */
export function whenSized(element: Element, render: (width: number) => void): void {
  let last = 0;
  const observer = new ResizeObserver(([entry]) => {
    const width = Math.floor(entry?.contentRect.width ?? 0);
    if (width === 0 || width === last) return;
    last = width;
    render(width);
  });
  queueMicrotask(() => {
    if (element.parentElement) observer.observe(element.parentElement);
  });
}
