# Query service, aggregates, HTTP.
