"""The decision under the policy: tools, capabilities, the verdict."""
