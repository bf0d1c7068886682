// Make sure that a note is there: read it, or else write it, headed by the last commit.
const history = await mcp.git.git_log({ repo_path: args.folder, max_count: 1 });
const found = await mcp.fs.search_files({ path: args.folder, pattern: args.note });

if (found.content.endsWith(args.note)) {
  const there = await mcp.fs.read_text_file({ path: `${args.folder}/${args.note}` });
  return { did: "read", note: args.note, text: there.content };
} else {
  const text = `${history}\n${args.text}\n`;
  await mcp.fs.create_directory({ path: `${args.folder}/${args.topic}` });
  await mcp.fs.write_file({ path: `${args.folder}/${args.note}`, content: text });
  return { did: "written", note: args.note, text };
}
