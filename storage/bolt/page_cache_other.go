//go:build !linux

package bolt

// dropCache does nothing: see page_cache_linux.go.
func dropCache(string) {}
