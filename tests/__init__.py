"""The tests of sfumato, laid out like the package, with suites that run over every method and engine."""
