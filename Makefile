.PHONY: all test lint update bench fuzz

all:
	.ci/run

test:
	go test -timeout 30m ./... ./cmd/tierflow-lab/... ./testdata/apps/... ./testdata/cluster/...

lint:
	go vet ./... ./cmd/tierflow-lab/... ./testdata/apps/... ./testdata/cluster/...
	staticcheck ./... ./cmd/tierflow-lab/... ./testdata/apps/... ./testdata/cluster/...

update:
	.ci/update

fuzz:
	.ci/fuzz

bench:
	go test -run '^$$' -bench . ./... ./cmd/tierflow-lab/...
