/** The official TypeScript SDK 1.x. */

import { Client } from "npm:@modelcontextprotocol/sdk@1/client/index.js";
import { StreamableHTTPClientTransport } from "npm:@modelcontextprotocol/sdk@1/client/streamableHttp.js";
import {
  ElicitRequestSchema,
  ToolListChangedNotificationSchema,
} from "npm:@modelcontextprotocol/sdk@1/types.js";
import { go } from "./common.ts";

await go(async (url, approves, changed) => {
  const client = new Client({ name: "typescript-1", version: "1.0.0" }, {
    capabilities: approves ? { elicitation: {} } : {},
  });
  if (approves) {
    client.setRequestHandler(
      ElicitRequestSchema,
      () => Promise.resolve({ action: "accept", content: { decision: "approve" } }),
    );
  }
  client.setNotificationHandler(
    ToolListChangedNotificationSchema,
    () => Promise.resolve(changed()),
  );
  // deno-lint-ignore no-explicit-any
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as any);
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
      const result = await client.callTool({ name, arguments: args }, undefined, { signal });
      return result.structuredContent as Record<string, unknown>;
    },
    close: () => client.close(),
  };
});
