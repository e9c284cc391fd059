// The cells as the server last told them. The browser reconnects by itself; a restarted server
// sends everything anew.

export const cells = new Map();
export let sweep = { name: "", states: {}, findings: [], unread: 0 };
const listeners = [];

export const onCells = (listen) => listeners.push(listen);

export function connect(onConnection) {
  const source = new EventSource("/api/stream");
  source.addEventListener("open", () => onConnection("live"));
  source.addEventListener("error", () => {
    onConnection("lost");
    if (source.readyState === EventSource.CLOSED) setTimeout(() => connect(onConnection), 2000);
  });
  source.addEventListener("cells", (event) => {
    const news = JSON.parse(event.data);
    if (news.fresh) cells.clear();
    news.gone.forEach((id) => cells.delete(id));
    news.cells.forEach((card) => cells.set(card.id, card));
    sweep = news.sweep;
    const changed = new Set(news.cells.map((card) => card.id));
    listeners.forEach((listen) => listen(changed, news.fresh));
  });
}
