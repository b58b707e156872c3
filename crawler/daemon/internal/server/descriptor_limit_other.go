//go:build !unix

package server

// maxDescriptors returns 0, because the limit is unknown on this system.
func maxDescriptors() uint64 { return 0 }
