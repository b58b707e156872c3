package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"sync"
	"time"
)

// A certificateIssuer is the authority of the benchmark. It issues a certificate for each host when
// a client first asks for it. All certificates have the same key, which costs clients nothing less,
// because they verify the signatures of every certificate.
type certificateIssuer struct {
	authority *x509.Certificate
	key       *ecdsa.PrivateKey // of the authority and of the hosts; ECDSA P-256

	mu     sync.Mutex               // guards issued
	issued map[int]*tls.Certificate // by the number of the host
}

// newCertificateIssuer returns an authority with a new key.
func newCertificateIssuer() (*certificateIssuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificateTemplate("bench")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	authority, err := x509.ParseCertificate(der)
	return &certificateIssuer{authority: authority, key: key, issued: map[int]*tls.Certificate{}}, err
}

// certificateTemplate returns a certificate for a name that is valid for a day.
func certificateTemplate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
	}
}

// pem returns the certificate of the authority, for clients.
func (c *certificateIssuer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.authority.Raw})
}

// certificateOf returns the certificate of a host by its number, for its name and its address.
func (c *certificateIssuer) certificateOf(host int) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.issued[host]; known != nil {
		return known, nil
	}
	template := certificateTemplate(hostName(host))
	template.DNSNames, template.IPAddresses = []string{hostName(host)}, []net.IP{hostAddress(host)}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, c.authority, &c.key.PublicKey, c.key)
	if err != nil {
		return nil, err
	}
	issued := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: c.key}
	c.issued[host] = issued
	return issued, nil
}
