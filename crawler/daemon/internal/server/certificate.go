package server

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// A reloadingCertificate is read anew when its file has changed, so that it can be renewed
// while the daemon runs.
type reloadingCertificate struct {
	certFile, keyFile string
	log               *slog.Logger
	mu                sync.Mutex
	loaded            *tls.Certificate
	loadedModTime     time.Time // when the file was changed that was read
	lastError         string    // why what is there now cannot be read; empty: it can
}

// currentCertificate returns the certificate. While the files cannot be read, or do not go
// together because one of them is being replaced, it is the one before, and the log
// says why, once.
func (c *reloadingCertificate) currentCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.certFile)
	if err == nil && c.loaded != nil && info.ModTime().Equal(c.loadedModTime) {
		return c.loaded, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.certFile, c.keyFile)
	}
	switch {
	case err == nil:
		c.loaded, c.loadedModTime, c.lastError = &pair, info.ModTime(), ""
	case c.loaded == nil:
		return nil, err
	case c.lastError != err.Error():
		c.lastError = err.Error()
		c.log.Warn("the new certificate cannot be read: the one before is used on", "expires", c.loaded.Leaf.NotAfter, "error", err)
	}
	return c.loaded, nil
}
