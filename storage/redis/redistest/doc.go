// Package redistest runs a Redis Cluster of local redis-server processes, for tests and benchmarks.
//
//	c := redistest.StartClusterForTest(t, 3, 1) // three masters, each with one replica
//	s, err := redis.Open(t.Context(), redis.Options{Addresses: c.Addrs(), Prefix: "test"})
//
// Begin with StartClusterForTest (cluster.go). The methods in control_nodes.go kill, pause and restart
// servers. Each process has one goroutine that waits for its end. There are no locks: a Cluster and its
// Nodes are for one goroutine at a time, apart from Do, DoUntil and IsMaster.
package redistest
