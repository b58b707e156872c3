package httpfetch_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// A certAuthority signs certificates.
type certAuthority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *certAuthority {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	a := new(certAuthority)
	a.certificate, a.key = a.sign(t, template)
	return a
}

// sign returns a certificate signed by a, and its key. If a is new, it returns a self-signed one.
func (a *certAuthority) sign(t *testing.T, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	by, with := a.certificate, a.key
	if by == nil {
		by, with = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), with)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// newServerConfig returns the TLS settings of a server for host.
func (a *certAuthority) newServerConfig(t *testing.T, host string, from, until time.Time) *tls.Config {
	t.Helper()
	certificate, key := a.sign(t, &x509.Certificate{DNSNames: []string{host}, NotBefore: from, NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}}}
}

func (a *certAuthority) certPool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// connectingTo returns cfg with a rule that connects to address whatever the URL says.
func connectingTo(t *testing.T, cfg httpfetch.Config, address string) httpfetch.Config {
	t.Helper()
	cfg.ConnectToRules = []string{"::" + address}
	return cfg
}

// TestTLSErrors: each problem with a certificate has a specific error, and nothing is sent.
func TestTLSErrors(t *testing.T) {
	t.Parallel()
	trusted, untrusted := newAuthority(t), newAuthority(t)
	now := time.Now()
	serveTLS := func(cfg *tls.Config) string {
		l := tls.NewListener(testlisten.Listen(t, "127.0.0.1:0"), cfg)
		go testlisten.Serve(l, func(c net.Conn) {
			defer c.Close()
			if n, _ := io.Copy(io.Discard, c); n > 0 {
				t.Error("something was sent")
			}
		})
		return l.Addr().String()
	}
	servePlain := func(s string) string {
		l := testlisten.Listen(t, "127.0.0.1:0")
		go testlisten.Serve(l, func(c net.Conn) {
			io.WriteString(c, s)
			io.Copy(io.Discard, c)
			c.Close()
		})
		return l.Addr().String()
	}
	old := trusted.newServerConfig(t, "site.test", now, now)
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
	for _, tt := range []struct{ name, address, want string }{
		{"expired", serveTLS(trusted.newServerConfig(t, "site.test", now.Add(-48*time.Hour), now.Add(-24*time.Hour))),
			"the server's certificate has expired on " + now.Add(-24*time.Hour).UTC().Format(time.DateOnly)},
		{"not yet valid", serveTLS(trusted.newServerConfig(t, "site.test", now.Add(24*time.Hour),
			now.Add(48*time.Hour))), "the server's certificate is not valid before"},
		{"of another host", serveTLS(trusted.newServerConfig(t, "other.test", now.Add(-time.Hour), now.Add(time.Hour))),
			"the server's certificate is for another host"},
		{"of an unknown authority", serveTLS(untrusted.newServerConfig(t, "site.test", now.Add(-time.Hour),
			now.Add(time.Hour))), "the server's certificate is from an unknown authority"},
		{"too old a version", serveTLS(old), "protocol version"},
		{"HTTP instead", servePlain("HTTP/1.1 400 Bad Request\r\n\r\n"), "server gave HTTP response to HTTPS client"},
		{"no TLS", servePlain("SSH-2.0-OpenSSH_9.2p1\r\n"), "first record does not look like a TLS handshake"},
		{"no word", servePlain(""), "no answer within 1s"},
	} {
		fetcher := httpfetch.NewWithNetwork(connectingTo(t, withShortTimeouts(hostileConfig), tt.address), nil,
			trusted.certPool())
		res, err := fetcher.Fetch(t.Context(), pageTicket(t, "https://site.test/"))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v; want %q", tt.name, res, err, tt.want)
		}
	}
}
