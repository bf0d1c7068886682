"""Binding of an approval: arguments as shown, compared with those of calls.

Executor and gateway both enforce it; approvers see what is enforced, by the same functions.
"""
