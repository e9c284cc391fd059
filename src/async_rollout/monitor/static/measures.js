// What can be drawn, and how its axis is called.

export const MEASURES = {
  pass_rate: "training pass rate", eval: "held-out pass rate", reward: "mean reward", kl: "KL",
  staleness: "staleness, mean (versions)", ess: "effective sample size ÷ tokens", speed: "trained tokens / s",
  entropy: "entropy (nats)", length: "response length (tokens)", grad_norm: "gradient norm",
  waiting: "groups waiting", running: "groups running",
};

export const AXES = { version: "updates", samples: "trained samples", tokens: "trained tokens", seconds: "seconds" };

// Points of one measure of a history; evaluations lie at the commit of their version.
export function points(history, y, x) {
  if (y !== "eval") return { x: history.columns[x], y: history.columns[y] };
  const { version, [x]: axis } = history.columns;
  const place = (at) => {
    const i = version.findIndex((v) => v >= at);
    return at === 0 ? 0 : axis[i < 0 ? axis.length - 1 : i] ?? 0;
  };
  return { x: history.evals.map((e) => place(e.version)), y: history.evals.map((e) => e.sampled) };
}
