// Make sure that a note is there: read it, or else write it, headed by the last commit.
const note = `${args.topic}/${args.name}.md`;
const path = `${args.folder}/${note}`;
const history = await mcp.git.git_log({ repo_path: args.folder, max_count: 1 });
const found = await mcp.fs.search_files({ path: args.folder, pattern: note });

if (found.content.endsWith(note)) {
  const there = await mcp.fs.read_text_file({ path });
  return { did: "read", note, text: there.content };
} else {
  const text = `${history}\n${args.text}\n`;
  await mcp.fs.create_directory({ path: `${args.folder}/${args.topic}` });
  await mcp.fs.write_file({ path, content: text });
  return { did: "written", note, text };
}
