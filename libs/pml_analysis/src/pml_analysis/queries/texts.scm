; Where characters are not code: in literals and in comments.
(string_fragment) @literal
(escape_sequence) @literal
(regex_pattern) @literal
(comment) @comment
(html_comment) @comment
