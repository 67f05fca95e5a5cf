"""Values brought to one scale: softmax and the layer, batch, group and other norms."""
