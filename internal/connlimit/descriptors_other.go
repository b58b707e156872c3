//go:build !unix

package connlimit

// MaxDescriptors returns 0, because the limit is unknown on this system.
func MaxDescriptors() uint64 { return 0 }
