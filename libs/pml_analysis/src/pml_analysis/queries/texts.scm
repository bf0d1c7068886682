; Text that is not code: literals and comments.
(string_fragment) @literal
(escape_sequence) @literal
(regex_pattern) @literal
(comment) @comment
(html_comment) @html_comment
