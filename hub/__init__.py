"""Pretrained models in one line: `hub.load("resnet50")`. Each file's hash is computed at each load; no code runs."""

from zoo.hub import cache as cache
from zoo.hub import listing as _listing
from zoo.hub.cache import get_dir as get_dir
from zoo.hub.cache import set_dir as set_dir
from zoo.hub.cache import verify as verify
from zoo.hub.errors import HubError as HubError
from zoo.hub.listing import download as download
from zoo.hub.listing import info as info
from zoo.hub.listing import path as path
from zoo.hub.loading import load as load
from zoo.hub.predicting import Prediction as Prediction
from zoo.hub.predicting import predict as predict
from zoo.hub.publish import push as push
from zoo.hub.publish import save_pretrained as save_pretrained
from zoo.hub.state_dicts import load_state_dict as load_state_dict
from zoo.hub.state_dicts import load_state_dict_from_url as load_state_dict_from_url

list = _listing.list_names
