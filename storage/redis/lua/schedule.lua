-- Whose turn it is: what package schedule is in one process. d holds the hosts that
-- have a record to hand out and a slot free, by when; p:HOST the origins of a host;
-- o the leases that are out, by when they run out, and l what they lease; z the
-- origins under a dormant hold, by its end; v those with pages that rest, by when
-- the first is due.

-- place keeps a member of a sorted set where at says: nil is nowhere.
local function place(key, member, at)
  if at then
    call('ZADD', base .. key, digits(at), member)
  else
    call('ZREM', base .. key, member)
  end
end

-- seat gives a host its place among those that wait for their turn. One that had a
-- turn in this call goes behind those that are due.
local function seat(h)
  local busy = get(h, 'q') + get(h, 'out') > 0 and 1 or 0
  add(meta, 'hosts', busy - get(h, 'busy'))
  set(h, 'busy', busy)
  local _, at = first(base .. 'p:' .. h.name)
  if at and get(h, 'out') < math.max(get(h, 'slots'), 1) then
    place('d', h.name, math.max(get(h, 'due'), at, h.turn or 0))
  else
    place('d', h.name, nil)
  end
end

-- tally brings the sums of the partition up to date.
local function tally(o, h)
  local all = get(o, 'n')
  if get(o, 'q') == 0 and all > 0 then set(o, 's', math.max(get(o, 's'), now)) end
  add(meta, 'queued', all - get(o, 'q'))
  add(h, 'q', all - get(o, 'q'))
  set(o, 'q', all)

  local dormant = 0
  if get(o, 'D') == 1 and get(o, 'e') > now then dormant = all - get(o, 'y') end
  if dormant > 0 or get(o, 'd') > 0 then
    place('z', o.name, dormant > 0 and get(o, 'e') or nil)
  end
  add(meta, 'dormant', dormant - get(o, 'd'))
  set(o, 'd', dormant)

  local rests = get(o, 'L' .. resting)
  if rests > 0 or get(o, 'r') > 0 then
    local _, revisit = first(laneKey(o, resting))
    if revisit and get(o, 'D') == 1 then revisit = math.max(revisit, get(o, 'e')) end
    place('v', o.name, revisit)
  end
  add(meta, 'resting', rests - get(o, 'r'))
  set(o, 'r', rests)
end

-- update takes note that the origin's lanes, hold or host have changed. An origin
-- waits since its last turn at the latest, so that those that are due take turns.
local function update(o)
  local h = host(o.is.H)
  tally(o, h)
  local at = ready(o)
  if at or get(o, 'in') == 1 then
    place('p:' .. h.name, o.name, at and math.max(at, get(o, 's')))
  end
  set(o, 'in', at and 1 or 0)
  seat(h)
end

local touched = {}
local function touch(o) touched[o.name] = o end

-- lengthen moves the time at which a host is due, which never moves back.
local function lengthen(h, due) set(h, 'due', math.max(get(h, 'due'), due)) end

-- setClock gives a host the clock that the arguments from the i-th on are: due, gap,
-- slots, strikes, memo.
local function setClock(h, i)
  lengthen(h, moment(ARGV[i]))
  set(h, 'gap', tonumber(ARGV[i + 1]))
  set(h, 'slots', tonumber(ARGV[i + 2]))
  set(h, 'strikes', tonumber(ARGV[i + 3]))
  if h.is.memo ~= ARGV[i + 4] then set(h, 'memo', ARGV[i + 4]) end
end

-- findLease returns the lease with the token, or nil.
local function findLease(token)
  local packed = call('HGET', base .. 'l', token)
  return packed and cmsgpack.unpack(packed)
end

-- endLease gives the slot of a lease free. Its first command is one that a server
-- carries out though its memory is full.
local function endLease(token, l)
  call('HDEL', base .. 'l', token)
  call('ZREM', base .. 'o', token)
  local o = origin(l.o)
  add(o, 'out', -1)
  add(host(o.is.H), 'out', -1)
  touch(o)
  return o
end

-- Of what a call does beside its own work there is a limit; the next goes on.
local portion = 50

-- wake lets dormant holds end; true if there may be more.
local function wake()
  if get(meta, 'dormant') == 0 then return false end
  local woken = call('ZRANGEBYSCORE', base .. 'z', '-inf', now, 'LIMIT', 0, portion)
  for _, name in ipairs(woken) do update(origin(name)) end
  return #woken == portion
end

-- expire lets leases run out: their records go back to the head of the queue, and
-- their hosts rest from then. It returns true if there may be more.
local function expire()
  local out = call('ZRANGEBYSCORE', base .. 'o', '-inf', now, 'WITHSCORES', 'LIMIT', 0, portion)
  for i = 1, #out, 2 do
    local l = findLease(out[i])
    local o = endLease(out[i], l)
    local h = host(o.is.H)
    lengthen(h, tonumber(out[i + 1]) + get(h, 'gap'))
    put(o, l.lane <= lasthop and 1 or 5, 0, l.record)
    update(o)
  end
  return #out == 2 * portion
end

-- sum is what a caller must know to say when to ask again: at the end stand the turns
-- of the first hosts.
local ahead = 4

local function sum(more)
  local all = {get(meta, 'version'), now, call('ZCARD', base .. 'o'), -1, get(meta, 'queued'),
    get(meta, 'dormant'), -1, get(meta, 'resting'), -1, get(meta, 'hosts'),
    get(meta, 'parked'), get(meta, 'seen'), call('ZCOUNT', base .. 'd', '-inf', now), more and 1 or 0,
    tonumber(string.sub(meta.is.reign or '', 1, 12), 16) or 0}
  local function firstOf(i, key) -- if there is one
    if all[i - 1] > 0 then all[i] = select(2, first(base .. key)) or -1 end
  end
  firstOf(4, 'o')
  firstOf(7, 'z')
  firstOf(9, 'v')
  local turns = call('ZRANGE', base .. 'd', 0, ahead - 1, 'WITHSCORES')
  for i = 2, #turns, 2 do all[#all + 1] = math.max(tonumber(turns[i]), get(meta, 'fence')) end
  return all
end

-- finish writes what the call has changed, and returns the sum.
local function finish(more)
  local changed = next(touched) ~= nil
  for _, o in pairs(touched) do update(o) end
  for _, o in pairs(objects) do changed = changed or next(o.changed) ~= nil end
  if changed then add(meta, 'version', 1) end
  for _, o in pairs(objects) do save(o) end
  return sum(more)
end
