/** The official TypeScript SDK 2.x, in the newest protocol that it finds. */

import { Client, StreamableHTTPClientTransport } from "npm:@modelcontextprotocol/client@2";
import { go } from "./common.ts";

await go(async (url, approves, changed) => {
  const client = new Client({ name: "typescript-2", version: "1.0.0" }, {
    capabilities: approves ? { elicitation: { form: {} } } : {},
    versionNegotiation: { mode: "auto" },
    listChanged: { tools: { autoRefresh: false, onChanged: () => changed() } },
  });
  if (approves) {
    client.setRequestHandler(
      "elicitation/create",
      () => Promise.resolve({ action: "accept" as const, content: { decision: "approve" } }),
    );
  }
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return {
    names: async () => {
      const names: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await client.listTools({ cursor });
        names.push(...page.tools.map((tool) => tool.name));
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      return names;
    },
    call: async (name, args, signal) => {
      const result = await client.callTool({ name, arguments: args }, { signal });
      return result.structuredContent as Record<string, unknown>;
    },
    close: () => client.close(),
  };
});
