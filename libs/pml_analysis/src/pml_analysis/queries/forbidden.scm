; Constructs that no program may use, whatever their parts are bound to. The name of the capture
; selects the message (rules/forbidden.py).
(import_statement) @import
(import_alias) @import
(export_statement) @export
(call_expression function: (import) @dynamic_import)
(meta_property . "import") @import_meta
(with_statement) @with
(hash_bang_line) @hash_bang
(html_comment) @html_comment
(internal_module) @namespace
(module) @namespace
(decorator) @decorator
(assignment_expression "using" @using)
