package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// writeCertificate writes a certificate for a serial number, and its key.
func writeCertificate(t *testing.T, d *ListenOptions, serial int64, changed time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{d.certFile: {Type: "CERTIFICATE", Bytes: cert},
		d.keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(d.certFile, changed, changed); err != nil {
		t.Fatal(err)
	}
}

// A renewed certificate is served without a restart. While only one of its files is replaced, the previous
// certificate is served.
func TestCertificateRenewal(t *testing.T) {
	dir := t.TempDir()
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	d := &ListenOptions{addr: "127.0.0.1:0", certFile: filepath.Join(dir, "cert.pem"),
		keyFile: filepath.Join(dir, "key.pem")}
	if _, _, err := d.openListener(t.Context(), log); err == nil || !strings.Contains(err.Error(), "cert.pem") {
		t.Errorf("without a certificate: %v", err)
	}
	begin := time.Now().Add(-time.Hour)
	writeCertificate(t, d, 1, begin)
	l, tlsConfig, err := d.openListener(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	l = tls.NewListener(l, tlsConfig)
	defer l.Close()
	go testlisten.Serve(l, func(c net.Conn) {
		_ = c.(*tls.Conn).Handshake()
		c.Close()
	})
	serial := func() int64 {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Errorf("certificate %d is served", got)
	}
	if err := os.WriteFile(d.keyFile, []byte("half a ke"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(d.certFile, begin.Add(time.Minute), begin.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := serial(); got != 1 {
			t.Errorf("half a renewal: certificate %d is served", got)
		}
	}
	if n := strings.Count(said.String(), "cannot be read"); n != 1 {
		t.Errorf("half a renewal is not logged once: %q", &said)
	}
	writeCertificate(t, d, 2, begin.Add(2*time.Minute))
	if got := serial(); got != 2 {
		t.Errorf("after the renewal: certificate %d is served", got)
	}
}
