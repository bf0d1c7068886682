// What does this folder say of itself? Every call only reads, so nobody has to approve it.
const found = await mcp.fs.search_files({ path: args.folder, pattern: "README*" });

if (found.content === "No matches found") {
  const listing = await mcp.fs.list_directory({ path: args.folder });
  return { readme: null, holds: listing.content.split("\n") };
} else {
  const readme = found.content.split("\n")[0];
  const head = await mcp.fs.read_text_file({ path: readme, head: 5 });
  return { readme, says: head.content };
}
