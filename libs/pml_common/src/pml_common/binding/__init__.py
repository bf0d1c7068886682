"""What an approval binds: arguments as they were shown, compared with those of calls (A11, B7).

Executor and gateway both enforce it; approvers are shown what is enforced, by the same functions.
"""
