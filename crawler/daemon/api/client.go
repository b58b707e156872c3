package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxResponseBytes is how much of an answer a Client reads, in bytes.
const maxResponseBytes = 256 << 20

// A Client speaks to a daemon's API. Its methods are some of Daemon's, and may be
// called at the same time. What the daemon refuses is a *Problem.
type Client struct {
	Server string       // as http://127.0.0.1:8470
	Token  string       // of a role that may make the calls; empty: HTTP uses the daemon's socket
	HTTP   *http.Client // nil: http.DefaultClient
}

// Projects returns all projects.
func (c *Client) Projects(ctx context.Context) (all []Project, err error) {
	return all, c.getJSON(ctx, projectsPath, &all)
}

// PutProject makes a project, or changes it.
func (c *Client) PutProject(ctx context.Context, name string, file []byte) error {
	return c.sendRequest(ctx, http.MethodPut, projectsPath+"/"+url.PathEscape(name), file, http.Header{"Content-Type": {yamlTypes[0]}}, nil)
}

// ControlProject asks a project for a state.
func (c *Client) ControlProject(ctx context.Context, name string, a ProjectAction) error {
	return c.sendRequest(ctx, http.MethodPost, projectAPIPath(name, string(a)), nil, nil, nil)
}

// Hosts returns a part of the hosts of a project.
func (c *Client) Hosts(ctx context.Context, name string, q HostQuery) (page *HostListPage, err error) {
	params := []string{"q", q.Search, "state", q.State, "sort", q.Sort, "offset", strconv.Itoa(q.Offset)}
	if q.Descending {
		params = append(params, "order", "desc")
	}
	if q.Limit != 0 {
		params = append(params, "limit", strconv.Itoa(q.Limit))
	}
	return page, c.getJSON(ctx, projectAPIPath(name, "hosts", params...), &page)
}

// ProjectActiveVisits returns the visits in hand.
func (c *Client) ProjectActiveVisits(ctx context.Context, name string) (all []ActiveVisit, err error) {
	return all, c.getJSON(ctx, projectAPIPath(name, "visits"), &all)
}

// ProjectThroughput returns what a project did lately.
func (c *Client) ProjectThroughput(ctx context.Context, name string, coarse bool) (all []ThroughputSample, err error) {
	return all, c.getJSON(ctx, projectAPIPath(name, "throughput", "coarse", strconv.FormatBool(coarse)), &all)
}

// Brakes returns the brakes that are on.
func (c *Client) Brakes(ctx context.Context) (all []Brake, err error) {
	return all, c.getJSON(ctx, brakesPath, &all)
}

// SetBrake stops or slows a host, and returns the brake that is on it then.
func (c *Client) SetBrake(ctx context.Context, host string, o BrakeRequest) (b *Brake, err error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return b, c.sendRequest(ctx, http.MethodPut, brakesPath+"/"+url.PathEscape(host), body, header, &b)
}

// LiftBrake takes a brake off; reason is for the audit.
func (c *Client) LiftBrake(ctx context.Context, host, reason string) error {
	return c.sendRequest(ctx, http.MethodDelete, brakesPath+"/"+url.PathEscape(host), nil, http.Header{reasonHeader: {reason}}, nil)
}

// projectAPIPath returns the path of a call about a project, with the parameters that are not
// empty.
func projectAPIPath(name, rest string, namesAndValues ...string) string {
	path := projectsPath + "/" + url.PathEscape(name) + "/" + rest
	params := url.Values{}
	for pair := range slices.Chunk(namesAndValues, 2) {
		if pair[1] != "" {
			params.Set(pair[0], pair[1])
		}
	}
	if len(params) > 0 {
		path += "?" + params.Encode()
	}
	return path
}

// getJSON asks for what is at path, and reads the answer into the value that into points at.
func (c *Client) getJSON(ctx context.Context, path string, into any) error {
	return c.sendRequest(ctx, http.MethodGet, path, nil, nil, into)
}

// open makes a call and returns the answer, whose body the caller closes.
func (c *Client) open(ctx context.Context, method, path string, body []byte, header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Server, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, header)
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	return cmp.Or(c.HTTP, http.DefaultClient).Do(r)
}

// sendRequest makes a call, and reads the answer into the value that into points at, unless that
// is nil.
func (c *Client) sendRequest(ctx context.Context, method, path string, body []byte, header http.Header, into any) error {
	res, err := c.open(ctx, method, path, body, header)
	if err != nil {
		return err
	}
	return readResponse(res, into)
}

// readResponse reads an answer, and closes its body.
func readResponse(res *http.Response, into any) error {
	respBody, err := io.ReadAll(io.LimitReader(res.Body, maxResponseBytes))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		p := &Problem{}
		media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
		if media != "application/problem+json" || json.Unmarshal(respBody, p) != nil {
			return newProblem(res.StatusCode, "%s is no daemon's answer: %s", res.Request.URL, res.Status)
		}
		return p
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(respBody, into); err != nil {
		return fmt.Errorf("%s is no daemon's answer: %w", res.Request.URL, err)
	}
	return nil
}
