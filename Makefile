.PHONY: all test lint update bench fuzz

all:
	.ci/run

test:
	go test ./... ./testdata/apps/... ./testdata/cluster/...

lint:
	go vet ./... ./testdata/apps/... ./testdata/cluster/...
	staticcheck ./... ./testdata/apps/... ./testdata/cluster/...

update:
	.ci/update

fuzz:
	.ci/fuzz

bench:
	go test -run '^$$' -bench . ./...
