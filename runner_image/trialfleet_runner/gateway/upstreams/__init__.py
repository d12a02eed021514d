"""Providers that take another request than the agent sends: Amazon Bedrock and Google's Vertex AI."""
