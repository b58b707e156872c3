//go:build !linux

package bolt

// dropCache does nothing: see cache_linux.go.
func dropCache(string) {}
