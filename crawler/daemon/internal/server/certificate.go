package server

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// A reloadingCertificate loads a TLS certificate from files, and loads it again when the file of the
// certificate has changed, so that it can be renewed while the daemon runs.
type reloadingCertificate struct {
	certFile, keyFile string
	log               *slog.Logger
	mu                sync.Mutex // guards loaded, loadedModTime and lastError
	loaded            *tls.Certificate
	loadedModTime     time.Time // the modification time of the certFile that loaded was read from
	lastError         string    // why the present files cannot be loaded, as logged; empty: they can
}

// currentCertificate returns the certificate for a handshake. While the files cannot be read, or do not
// match because one of them is being replaced, it returns the previous certificate and logs the reason
// once. It returns an error only if no certificate was ever loaded.
func (c *reloadingCertificate) currentCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Load the files only if the certificate has changed since.
	info, err := os.Stat(c.certFile)
	if err == nil && c.loaded != nil && info.ModTime().Equal(c.loadedModTime) {
		return c.loaded, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.certFile, c.keyFile)
	}
	// After an error, keep the previous certificate, and log each new error once.
	switch {
	case err == nil:
		c.loaded, c.loadedModTime, c.lastError = &pair, info.ModTime(), ""
	case c.loaded == nil:
		return nil, err
	case c.lastError != err.Error():
		c.lastError = err.Error()
		c.log.Warn("the new certificate cannot be read: the previous one stays in use", "expires",
			c.loaded.Leaf.NotAfter, "error", err)
	}
	return c.loaded, nil
}
