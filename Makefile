.PHONY: all test lint update bench

all:
	.ci/run

test:
	go test ./... ./testdata/...

lint:
	go vet ./... ./testdata/...
	staticcheck ./... ./testdata/...

update:
	.ci/update

bench:
	go test -run '^$$' -bench . ./...
