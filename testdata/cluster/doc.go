// Package cluster holds the script cluster, which emulates a cluster of network namespaces with shaped links on one
// Linux machine, and its test. It has no Go code of its own and is never imported; README.md says how to use it:
//
//	cluster up 4 --rate 1gbit
//	cluster exec 0 tierflow run --hosts node0,node1,node2,node3 …
//	cluster down
package cluster
