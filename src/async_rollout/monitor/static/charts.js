// Plotly from this server, loaded when the first chart is wanted, in the page's colours.

let loading = null;

export function plotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "/static/plotly.min.js";
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => reject(new Error("plotly.min.js could not be loaded")));
    document.head.append(script);
  });
  return loading;
}

export const PALETTE = ["#4c6ef5", "#e8590c", "#2f9e44", "#ae3ec9", "#1098ad", "#e03131", "#b08900", "#868e96",
  "#d6336c", "#5c940d"];

export async function draw(element, traces, { x = "", y = "", legend = false, ...more } = {}) {
  const Plotly = await plotly();
  if (!element.isConnected) return;
  const nothing = !traces.some((trace) => trace.x.length);
  element.classList.toggle("empty", nothing);
  if (nothing) {
    Plotly.purge(element);
    return;
  }
  const style = getComputedStyle(document.documentElement);
  const [text, soft, line, panel] = ["--text", "--soft", "--line", "--panel"].map((n) => style.getPropertyValue(n).trim());
  const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, tickfont: { color: soft }, automargin: true };
  const titled = (title) => ({ ...axis, title: { text: title, font: { size: 11, color: soft }, standoff: 6 } });
  await Plotly.react(element, traces, {
    paper_bgcolor: "transparent", plot_bgcolor: "transparent", font: { color: text, size: 11 },
    margin: { l: 46, r: 12, t: 8, b: 36 }, hovermode: "closest", showlegend: legend,
    legend: { orientation: "h", y: -0.22, font: { size: 11 } },
    hoverlabel: { bgcolor: panel, bordercolor: line, font: { color: text } },
    uirevision: "keep", ...more,
    xaxis: { ...titled(x), ...more.xaxis }, yaxis: { ...titled(y), ...more.yaxis },
  }, { displayModeBar: false, responsive: true });
}

// Mean of each point and up to n - 1 before it.
export function smoothed(values, n) {
  let sum = 0;
  return values.map((value, i) => {
    sum += value - (i >= n ? values[i - n] : 0);
    return sum / Math.min(i + 1, n);
  });
}
