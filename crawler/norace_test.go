//go:build !race

package crawler_test

// raceEnabled says that the race detector is on: everything takes ten times as long.
const raceEnabled = false
