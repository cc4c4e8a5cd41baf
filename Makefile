.PHONY: all test lint update bench

all:
	.ci/run

test:
	go test ./... ./testdata/cluster/...

lint:
	go vet ./... ./testdata/cluster/...
	staticcheck ./... ./testdata/cluster/...

update:
	.ci/update

bench:
	go test -run '^$$' -bench . ./...
