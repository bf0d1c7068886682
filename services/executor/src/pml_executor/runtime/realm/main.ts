/** Entry point of the standing Worker of realms. */
import { type Post, Realms } from "./outer.ts";
import { PROBES } from "./probes.ts";

/** The text of the inner side (build.ts). */
declare const INNER: string;

function serve(port: MessagePort): void {
  const post: Post = (data) => port.postMessage(data);
  const realms = new Realms(INNER, post);
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault(); // before all else: unhandled here, it would end the Worker
    realms.rejected(event.reason);
  });
  const ready = () => {
    post(null);
    realms.prepare();
  };
  port.onmessage = ({ data }) => {
    if (data === null) void realms.end().then(ready);
    else realms.receive(data);
  };
  realms.hit(PROBES).then((hit) => hit === null ? ready() : post(["unfit", hit]));
}

addEventListener("message", (event) => serve((event as MessageEvent).ports[0]!), { once: true });
