-- What all verbs share. KEYS[1] begins every key of the partition. ARGV[1] is the
-- time in microseconds since 1970 that the caller was told, or empty: then this
-- server's clock counts, and times in arguments are offsets from it. Numbers are
-- doubles, which hold microseconds to the year 2255.
local base, call = KEYS[1], redis.call
local now, zero = tonumber(ARGV[1]), 0
if not now then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
  zero = now
end

-- moment reads a time of the arguments: empty is none, and is kept as 0.
local function moment(s)
  if s == '' then return 0 end
  return math.max(0, math.min(9007199254740991, zero + tonumber(s)))
end

-- Objects are hashes that a call reads once, changes, and writes once in the end.
-- A field that is 0 or empty is not there.
local objects = {}

local function object(key)
  local o = objects[key]
  if o then return o end
  o = {key = base .. key, is = {}, changed = {}}
  local flat = call('HGETALL', o.key)
  o.new = #flat == 0
  for i = 1, #flat, 2 do o.is[flat[i]] = flat[i + 1] end
  objects[key] = o
  return o
end

local function get(o, field) return tonumber(o.is[field]) or 0 end

local function set(o, field, value)
  if value == 0 or value == '' then value = nil end
  if o.is[field] == value or value and tonumber(o.is[field]) == value then return end
  o.is[field], o.changed[field] = value, true
end

local function add(o, field, n)
  if n ~= 0 then set(o, field, get(o, field) + n) end
end

-- digits writes a whole number, which the server would take longer for.
local function digits(n) return string.format('%d', n) end

local function save(o)
  local puts, drops = {}, {}
  for field in pairs(o.changed) do
    if o.is[field] == nil then
      drops[#drops + 1] = field
    else
      local value = o.is[field]
      if type(value) == 'number' then value = digits(value) end
      puts[#puts + 1], puts[#puts + 2] = field, value
    end
  end
  o.changed = {}
  if #drops > 0 then call('HDEL', o.key, unpack(drops)) end
  if #puts > 0 then call('HSET', o.key, unpack(puts)) end
end

local meta = object('m')

local function host(name)
  local h = object('h:' .. name)
  if h.new then
    -- A host that is new needs no rest for a failover, once its fence is over.
    h.new, h.name = false, name
    set(h, 'f', now < get(meta, 'fence') and get(meta, 'epoch') - 1 or get(meta, 'epoch'))
  end
  h.name = name
  return h
end

-- origin returns an origin that was met, or nil.
local function origin(name)
  local o = object('o:' .. name)
  o.name = name
  if o.new then return nil end
  return o
end

-- meet returns an origin, which is noted if it is new.
local function meet(name, of)
  local o = origin(name)
  if o then return o end
  o = object('o:' .. name)
  o.new, o.is.H, o.changed.H = false, of, true
  if name ~= '' then call('RPUSH', base .. 'a', name) end
  return o
end

local function first(key)
  local t = call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return t[1], tonumber(t[2])
end
