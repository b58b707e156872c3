package ftpfetch

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/jlaffaye/ftp"

	"github.com/decorum-crawler/decorum"
)

// connectAndFetch opens the session and sets res to what is at name. Its error is a
// *textproto.Error if a reply of the server ended the visit.
func (s *session) connectAndFetch(name string, res *decorum.Response) (err error) {
	defer func() {
		if p := recover(); p != nil { // the ftp client panics on some replies
			err = fmt.Errorf("a reply of the server cannot be read: %v", p)
		}
	}()
	if err := s.connectAndLogin(); err != nil {
		return err
	}
	if strings.HasSuffix(name, "/") {
		return s.fetchListing(name, res)
	}
	err = s.fetchFile(name, res)
	// A directory that is named like a file is redirected to its URL with a slash.
	if replyCode(err)/100 == 5 && !s.ticket.Kind().IsRobots() && s.client.ChangeDir(name) == nil {
		res.Status, res.Body = http.StatusMovedPermanently, nil
		res.Header = http.Header{"Location": {res.URL.String() + "/"}}
		return nil
	}
	return err
}

// sniffBytes is how many bytes of a file its content type is detected from.
const sniffBytes = 512

// fetchFile sets res to a file, unless the file is unmodified since the last visit or its type is
// not wanted.
func (s *session) fetchFile(name string, res *decorum.Response) error {
	if !s.checkModified(name, res.Header) {
		res.Status = http.StatusNotModified
		return nil
	}
	answer, err := s.client.Retr(name)
	if err != nil {
		return markNotFound(err)
	}
	// Find the content type, from the name or else from the first bytes.
	var head []byte
	contentType := mime.TypeByExtension(path.Ext(name))
	if contentType == "" {
		if head, err = io.ReadAll(io.LimitReader(answer, sniffBytes)); err != nil {
			return err
		}
		contentType = http.DetectContentType(head)
	}
	res.Status = http.StatusOK
	res.Header.Set("Content-Type", contentType)
	if !s.ticket.WantsContentType(contentType, s.cfg.ContentTypes) {
		res.BodyLimitExceeded = true
		return nil // the end of the session ends the transfer
	}
	// Read the body, a sitemap into a spool, and check that the server sent all of it.
	body := io.MultiReader(bytes.NewReader(head), answer)
	if s.ticket.StreamsBody() {
		if s.bodySpool, err = s.memoryShare.NewCompressedSpool(s.ctx, s.cfg.BodyMemory.MaxBodyLen(1)); err != nil {
			return err
		}
		res.BodyLimitExceeded, err = s.bodySpool.Fill(body, s.maxBodyBytes)
	} else {
		res.Body, res.BodyLimitExceeded, err = s.memoryShare.ReadAll(s.ctx, body, s.maxBodyBytes, 0, nil)
	}
	if err != nil || res.BodyLimitExceeded {
		return err
	}
	return errorUnlessComplete(answer.Close())
}

// errorUnlessComplete returns err, or nil if err is a reply that the transfer is complete. Without
// such a reply the file may be cut.
func errorUnlessComplete(err error) error {
	if replyCode(err) == ftp.StatusRequestedFileActionOK { // means the same as 226 (RFC 959 §4.2.2)
		return nil
	}
	return err
}

// checkModified sets Last-Modified to the file's time, and reports whether the file must be
// fetched. It returns true if the server does not know the time.
func (s *session) checkModified(name string, h http.Header) bool {
	at, err := s.client.GetTime(name)
	if err != nil {
		return true
	}
	now := at.UTC().Format(http.TimeFormat)
	h.Set("Last-Modified", now)
	_, last := s.ticket.Validators()
	return last != now
}
