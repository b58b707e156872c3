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

// connectAndFetch opens the session and fills res with what is at name. A reply of the
// server that ends the visit is a *textproto.Error.
func (s *session) connectAndFetch(name string, res *decorum.Response) (err error) {
	defer func() {
		if p := recover(); p != nil { // the client stumbles over some replies
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
	if replyCode(err)/100 == 5 && !s.ticket.Kind().IsRobots() && s.client.ChangeDir(name) == nil {
		res.Status, res.Body = http.StatusMovedPermanently, nil
		res.Header = http.Header{"Location": {res.URL.String() + "/"}}
		return nil
	}
	return err
}

// sniffBytes is how many bytes of a file say of what type it is.
const sniffBytes = 512

// fetchFile fetches a file, if it is wanted and not as it was at the last visit.
func (s *session) fetchFile(name string, res *decorum.Response) error {
	if !s.checkModified(name, res.Header) {
		res.Status = http.StatusNotModified
		return nil
	}
	answer, err := s.client.Retr(name)
	if err != nil {
		return markNotFound(err)
	}
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

// errorUnlessComplete returns err unless it says that the transfer is complete. Without that
// reply it may have been cut.
func errorUnlessComplete(err error) error {
	if replyCode(err) == ftp.StatusRequestedFileActionOK { // as good as 226 (RFC 959 §4.2.2)
		return nil
	}
	return err
}

// checkModified notes when a file was modified, and reports whether it is to be
// fetched. Not every server knows; one that has gone does not answer RETR either.
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
