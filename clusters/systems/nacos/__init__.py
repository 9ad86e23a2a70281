"""The naming service of Nacos as a system under test."""
