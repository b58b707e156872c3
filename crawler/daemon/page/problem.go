package page

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A problemData is why something was not done, and where it was asked for.
type problemData struct {
	*api.Problem
	BackURL string
}

func forbiddenProblem(detail string) *api.Problem {
	return &api.Problem{Title: http.StatusText(http.StatusForbidden), Status: http.StatusForbidden, Detail: detail}
}

func unreadableFormProblem(err error) *api.Problem {
	p := &api.Problem{Title: "The form cannot be read", Status: http.StatusBadRequest, Detail: err.Error()}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		p.Status = http.StatusRequestEntityTooLarge
		p.Detail = fmt.Sprintf("a form may have %s; send more to the API", formatBytes(float64(tooLarge.Limit)))
	}
	return p
}

// problemView is the page of an error.
func problemView(err error) pageResult {
	p := problemOf(err)
	return pageResult{templateName: "problem", title: p.Title, status: p.Status, data: problemData{p, "/"}}
}

// problemOf returns an error as the API tells it.
func problemOf(err error) *api.Problem {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return p
	}
	return &api.Problem{Title: http.StatusText(http.StatusInternalServerError), Status: http.StatusInternalServerError, Detail: err.Error()}
}
